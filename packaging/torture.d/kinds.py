"""Kinds: a bridge, a transform or a statement fails or breaks an invariant when it comes to one of its rows.

The run must end with the error of that row, and the store stays as it was. Where nothing goes wrong, the invariants of
the plan hold, and the report names them.
"""

# What a row has its stage do, and the code of the error that ends the run.
FAILURES = {"throw": "I301", "die": "I302", "abort": "I302", "exit": "I303", "break": "I320"}
# SQLite refuses the arithmetic of a statement at that row.
STATEMENT_FAILURES = {"throw": "I316", "break": "I320"}
# A bridge has models, and can do more with them.
BRIDGE_FAILURES = {**FAILURES, "drop": "I320", "unlink": "I320", "rename": "I320"}
# The invariants of each plan in Kinds.swift.
INVARIANTS = {"coredata": 4, "plain": 3}


def perform(case):
    rows = case.chance.choice((3, 24, 120, 700))
    case.make(rows=rows)
    if not case.bench.kinds_plugin:
        return case.note("left out: the plugin is another one")
    case.use_other_kind()
    failures = BRIDGE_FAILURES if case.recipe.format == "coredata" else FAILURES
    if case.runs_statements():
        failures = STATEMENT_FAILURES
    if case.chance.random() < 0.15:
        answer = case.programs.migrate(case.store, case.state, case.bench.limit)
        held = (answer.report or {}).get("invariants") or []
        if len(held) != INVARIANTS[case.recipe.format]:
            case.problem("untrue", f"the report names these invariants: {held}")
        return case.conclude(answer)
    mark = case.chance.choice(sorted(failures))
    row = case.chance.randrange(1, rows + 1)
    case.mark(row, mark)
    answer = case.programs.migrate(case.store, case.state, case.bench.limit)
    require_error(case, answer, mark, row, failures[mark])
    # The next run would fail at this row, too.
    version = case.conclude(answer, finish=False)
    if version == "new":
        case.problem("untrue", f"the store was migrated, although row {row} says '{mark}'")
    return version


def require_error(case, answer, mark, row, code):
    error = (answer.report or {}).get("error") or {}
    if error.get("code") != code:
        return case.problem("untrue", f"the error has the code {error.get('code')}, expected {code}: {error}")
    # A bridge's code throws its own error, and SQLite does not name the row.
    names_row = mark == "throw" and case.recipe.format == "plain" and not case.runs_statements()
    if names_row and f"of row {row}:" not in error.get("cause", ""):
        case.problem("untrue", f"the error does not name row {row}: {error}")
    if code == "I320" and mark != "rename" and (error.get("rows") or {}).get("keys") != [str(row)]:
        case.problem("untrue", f"the error does not have the key of row {row}: {error}")
    return None
