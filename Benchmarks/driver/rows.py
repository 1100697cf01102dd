"""The rows: what is divided by what, and the target of each."""

import dataclasses

from driver.large_plan import MODELS
from driver.measurement import Work, size_name

BOTH = ("plain", "coredata")
PLAIN = ("plain",)
# What an app with Core Data's format does.
CORE_DATA = ("coredata",)

# Who works on plain stores only.
PEERS = ("grdb", "alembic", "django", "sqlite-utils")


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How many rows or stores the benchmarks use."""

    big: int = 1_000_000
    medium: int = 100_000
    fetched: int = 300_000
    fleet: int = 10_000
    inverse: tuple = (1_000, 10_000)
    watched: int = 100_000

    @staticmethod
    def quick():
        return Sizes(big=100_000, medium=10_000, fetched=30_000, fleet=400, inverse=(200, 2_000), watched=1_000)


@dataclasses.dataclass(frozen=True)
class Row:
    """`ours` divided by the sum of `against`; without `against` the value of `ours` in `unit`."""

    name: str
    meaning: str
    target: float
    ours: tuple = ()
    against: tuple = ()
    unit: str = "ratio"
    quantity: str = "value"
    formats: tuple = PLAIN
    # Why the row cannot be measured yet.
    missing: str = ""

    def works(self, works, format):
        return [dataclasses.replace(work, format="plain" if work.by in PEERS else format) for work in works]


def rows(sizes):
    """All rows, in the order in which they are shown."""
    big, medium, fetched, fleet = map(size_name, (sizes.big, sizes.medium, sizes.fetched, sizes.fleet))
    few, many = map(size_name, sizes.inverse)
    # Names without a size are those of the full benchmarks.
    memory_size = "" if sizes == Sizes() else f"_{big}"
    copy, check = Work("limit", "copy", sizes.big), Work("limit", "check", sizes.big)

    def instar(what, size):
        return (Work("instar", what, size),)

    return [
        Row(f"transform_{big}_vs_c", "transform stage ÷ shadow_c + check", 1.5,
            instar("Transform", sizes.big), (Work("limit", "shadow_c", sizes.big), check), formats=BOTH),
        Row(f"transform_{big}_vs_classic", "transform stage ÷ .backup + GRDB by rows + integrity_check", 0.2,
            instar("Transform", sizes.big),
            (Work("limit", "backup to a new file", sizes.big), Work("grdb", "rows", sizes.big),
             Work("limit", "integrity", sizes.big))),
        Row(f"transform_{size_name(sizes.big * 10)}_vs_{big}", "transform stage, ten times the rows", 12,
            instar("Transform", sizes.big * 10), instar("Transform", sizes.big)),
        Row(f"objects_{medium}_vs_c", "enumerate in didMigrate ÷ cust_a", 2.5,
            instar("Objects", sizes.medium), (Work("limit", "cust_a", sizes.medium),), formats=BOTH),
        Row(f"objects_{medium}_vs_grdb_codable", "enumerate in didMigrate ÷ GRDB Codable records", 0.5,
            instar("Objects", sizes.medium), (Work("grdb", "codable", sizes.medium),), formats=BOTH),
        Row(f"objects_{big}_vs_{medium}", "enumerate in didMigrate, ten times the rows", 11,
            instar("Objects", sizes.big), instar("Objects", sizes.medium), formats=BOTH),
        Row(f"objects_{big}_vs_c", "enumerate in didMigrate ÷ cust_a", 2.5,
            instar("Objects", sizes.big), (Work("limit", "cust_a", sizes.big),), formats=BOTH),
        Row(f"addcolumn_{big}_vs_copy", "lightweight add ÷ copy + check", 1.3,
            instar("AddColumn", sizes.big), (copy, check), formats=BOTH),
        Row(f"rename_{big}_vs_copy", "lightweight rename ÷ copy + check", 1.3,
            instar("RenameColumn", sizes.big), (copy, check), formats=BOTH),
        Row(f"dropcolumn_{big}_vs_c", "lightweight remove ÷ shadow_dropcol + check", 1.3,
            instar("DropColumn", sizes.big), (Work("limit", "shadow_dropcol", sizes.big), check), formats=BOTH),
        Row(f"unique_{big}_vs_c", "typed stage that removes duplicates, unique index ÷ shadow_uniq + check", 1.6,
            instar("Unique", sizes.big), (Work("limit", "shadow_uniq", sizes.big), check), formats=BOTH),
        Row(f"writeback_{big}_vs_c",
            "lightweight add with the store open elsewhere ÷ copy + check + backup into the store", 1.5,
            instar("AddColumn while open", sizes.big), (copy, check, Work("limit", "backup", sizes.big)),
            formats=BOTH),
        Row(f"fleet_{fleet}_vs_c", "many small stores, lightweight add ÷ shadow_batch + 2 × quick_check", 2.0,
            instar("fleet", sizes.fleet),
            (Work("limit", "fleet shadow_batch", sizes.fleet), Work("limit", "fleet quick_check", sizes.fleet),
             Work("limit", "fleet quick_check", sizes.fleet)), formats=BOTH),
        Row(f"fleet_{fleet}_vs_grdb", "many small stores, lightweight add ÷ GRDB in one process", 0.8,
            instar("fleet", sizes.fleet), (Work("grdb", "fleet", sizes.fleet),), formats=BOTH),
        Row(f"probe_{fleet}_vs_c", "probe of many small stores ÷ detect_meta", 2.0,
            instar("probe", sizes.fleet), (Work("limit", "fleet detect_meta", sizes.fleet),), formats=BOTH),
        Row(f"blocked_ms_{big}", "longest wait of an app that writes during a run with whenBusy: migrate", 1_500,
            instar("AddColumn beside a writer", sizes.big), unit="ms", formats=BOTH),
        Row(f"sdk_insert_{medium}_vs_grdb", "insert models and save ÷ GRDB Codable records", 2.0,
            (Work("app", "insert", sizes.medium),), (Work("grdb", "insert", sizes.medium),), formats=CORE_DATA),
        Row(f"sdk_fetch_{medium}_vs_grdb", "fetch models, read three properties ÷ GRDB Codable records", 1.0,
            (Work("app", "fetch", sizes.medium),), (Work("grdb", "fetch", sizes.medium),), formats=CORE_DATA),
        Row(f"sdk_inverse_{many}_vs_{few}", "ten times the new models that refer to one other", 12,
            (Work("app", "inverse", sizes.inverse[1]),), (Work("app", "inverse", sizes.inverse[0]),),
            formats=CORE_DATA),
        Row("worker_start_ms", "start of a worker until its plugin is loaded", 20,
            (Work("worker", "start", 1),), unit="ms"),
        Row("plugin_build_s", f"'plugin build' of a plan with {MODELS} models of 20 properties in 2 versions", 8,
            (Work("builder", "plugin build", MODELS),), unit="s"),
        Row(f"rss_transform{memory_size}_mb", f"peak of the memory, transform stage, {big} rows", 64,
            instar("Transform", sizes.big), unit="MB", quantity="peak_mb", formats=BOTH),
        Row(f"rss_objects{memory_size}_mb", f"peak of the memory, enumerate in didMigrate, {big} rows", 128,
            instar("Objects", sizes.big), unit="MB", quantity="peak_mb", formats=BOTH),
        Row(f"rss_fetch_{fetched}_mb", f"peak of the memory, fetch of all models in didMigrate, {fetched} rows", 128,
            instar("Fetch", sizes.fetched), unit="MB", quantity="peak_mb", formats=BOTH),
        Row(f"rss_bridge{memory_size}_mb", f"peak of the memory, enumerate and counterpart in a bridge, {big} rows", 128,
            instar("Bridge", sizes.big), unit="MB", quantity="peak_mb", formats=BOTH),
        Row(f"idle_{size_name(sizes.watched)}_rss_mb", "memory of a daemon that watches quiet stores", 64,
            (Work("daemon", "memory", sizes.watched),), unit="MB"),
        Row("idle_cpu_percent" if sizes == Sizes() else f"idle_{size_name(sizes.watched)}_cpu_percent", "processor time of the same daemon", 0.1,
            (Work("daemon", "processor", sizes.watched),), unit="percent"),
    ]


@dataclasses.dataclass(frozen=True)
class PeerRow:
    """The same work by somebody else, as the sum of `works`, and the work of ours to compare it with."""

    title: str
    by: str
    ours: Work
    works: tuple


def peer_rows(sizes):
    """What the tools that people use today need for the same change, without a clone and without verification."""
    found = []
    for title, ours, operation, size in (
            ("add a column", "AddColumn", "add", sizes.big), ("rename a column", "RenameColumn", "rename", sizes.big),
            ("drop a column", "DropColumn", "drop", sizes.big),
            ("each row through code", "Objects", "objects", sizes.medium)):
        for peer in PEERS:
            what = "rows" if (peer, operation) == ("grdb", "objects") else operation
            found.append(PeerRow(
                f"{title}, {size_name(size)} rows", peer, Work("instar", ours, size), (Work(peer, what, size),)))
        if size == sizes.big:
            found.append(PeerRow(
                f"{title}, {size_name(size)} rows", "backup, grdb, integrity_check", Work("instar", ours, size),
                (Work("limit", "backup to a new file", size), Work("grdb", operation, size),
                 Work("limit", "integrity", size))))
    return found
