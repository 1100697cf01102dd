@_exported public import Foundation
@_exported public import InstarModel
@_exported public import InstarSchema
@_exported public import InstarText
@_exported public import Observation

// The engine is in the library for the worker, which finds `instar_worker_main` in it; nothing of it is public.
internal import InstarEngine
