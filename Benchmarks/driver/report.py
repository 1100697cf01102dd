"""What the benchmarks print: a table for people, one JSON object for programs."""

import os
import platform
import sqlite3
import subprocess

from driver.tools import ROOT

# Formats that differ by more than this are two rows.
FORMAT_DIFFERENCE = 0.2


def evaluate(rows, results):
    """Returns one dictionary for each row, or two where the formats differ."""
    found = []
    for row in rows:
        if row.missing:
            found.append({"name": row.name, "meaning": row.meaning, "unit": row.unit, "target": row.target,
                          "built": False, "reason": row.missing, "value": None, "ok": None})
            continue
        by_format = [evaluate_format(row, results, format) for format in row.formats]
        values = {evaluated["format"]: evaluated["value"] for evaluated in by_format}
        if len(values) == 1:
            found += by_format
        elif None in values.values() or max(values.values()) > (1 + FORMAT_DIFFERENCE) * min(values.values()):
            for evaluated in by_format[1:]:
                evaluated["name"] += f"_{evaluated['format']}"
            found += by_format
        else:
            found.append({**max(by_format, key=lambda evaluated: evaluated["value"]), "formats": values})
    return found


def evaluate_format(row, results, format):
    evaluated = {"name": row.name, "meaning": row.meaning, "format": format, "unit": row.unit, "target": row.target,
                 "built": True}
    ours, against = row.works(row.ours, format), row.works(row.against, format)
    failure = results.failure([*ours, *against])
    if failure:
        return {**evaluated, "failure": failure, "value": None, "ok": False}
    summary = results.summary(ours, row.quantity)
    value = summary.median
    evaluated["ours"] = summary.json()
    if against:
        divisor = results.summary(against, row.quantity)
        value /= divisor.median
        evaluated["against"] = divisor.json()
    return {**evaluated, "value": value, "ok": value <= row.target}


def evaluate_peers(rows, results):
    found = []
    for row in rows:
        failure = results.failure([row.ours, *row.works])
        evaluated = {"work": row.title, "by": row.by}
        if failure:
            found.append({**evaluated, "failure": failure})
            continue
        ours, theirs = results.summary([row.ours]), results.summary(row.works)
        found.append({**evaluated, "instar": ours.json(), "seconds": theirs.json(),
                      "ratio": ours.median / theirs.median})
    return found


def machine(folder):
    """What the figures depend on."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    with open("/proc/meminfo", encoding="utf-8") as file:
        kilobytes = int(file.readline().split()[1])
    file_system = subprocess.run(
        ["df", "--output=fstype", folder], stdout=subprocess.PIPE, text=True, check=False)
    return {
        "processor": model, "processors": os.cpu_count(), "memoryGiB": round(kilobytes / 1024 / 1024),
        "kernel": platform.release(), "system": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "fileSystem": file_system.stdout.strip().rpartition("\n")[2], "sqlite": sqlite3.sqlite_version,
        "loadBefore": round(os.getloadavg()[0], 2)}


def commit():
    found = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], stdout=subprocess.PIPE, text=True, check=False)
    return found.stdout.strip()


# MARK: Tables

def number(value):
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 0.01 else f"{value:.1g}"


def times(summary, unit="s"):
    """The median, and in parentheses minimum and maximum."""
    if not summary:
        return "–"
    values = [number(summary[key]) for key in ("median", "min", "max")]
    shown = f"{values[0]} {unit}"
    return shown if values[1] == values[2] else f"{shown} ({values[1]}–{values[2]})"


def table(headings, lines):
    widths = [max(map(len, column)) for column in zip(headings, *lines)]
    yield "| " + " | ".join(text.ljust(width) for text, width in zip(headings, widths)) + " |"
    yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    for line in lines:
        yield "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths)) + " |"


def row_lines(rows):
    for row in rows:
        unit = "" if row["unit"] == "ratio" else f" {row['unit']}"
        target = f"{row['target']:,}{unit}"
        if not row["built"]:
            yield (row["name"], row["meaning"], "–", "–", "–", target, f"not built yet: {row['reason']}")
            continue
        if "failure" in row:
            yield (row["name"], row["meaning"], "–", "–", "–", target, f"failed: {row['failure']}")
            continue
        ours = times(row["ours"], "s" if row["unit"] == "ratio" else row["unit"])
        yield (row["name"], row["meaning"], ours, times(row.get("against")), number(row["value"]) + unit, target,
               "yes" if row["ok"] else "no")


def peer_lines(peers):
    for peer in peers:
        if "failure" in peer:
            yield (peer["work"], peer["by"], f"failed: {peer['failure']}", "–", "–")
        else:
            yield (peer["work"], peer["by"], times(peer["seconds"]), times(peer["instar"]), number(peer["ratio"]))


def text(report):
    """The tables, in Markdown."""
    facts = report["machine"]
    yield (f"{facts['processor']}, {facts['processors']} processors, {facts['memoryGiB']} GiB, {facts['system']}, "
           f"kernel {facts['kernel']}, {facts['fileSystem']}, SQLite {facts['sqlite']}; load before: "
           f"{facts['loadBefore']}; rounds: {report['rounds']}")
    yield ""
    if report["rows"]:
        yield from table(
            ("row", "what is divided by what", "Instar", "divided by", "value", "at most", "ok"),
            list(row_lines(report["rows"])))
    if report["peers"]:
        yield ""
        yield "Without clone, backup and verification, unless they are named:"
        yield ""
        yield from table(("work", "by", "time", "Instar", "Instar ÷ time"), list(peer_lines(report["peers"])))
