"""Creates the stores: templates, made once, and the fresh copies that the works change."""

import os
import shutil
import sqlite3

from driver.tools import run

NOTES_OF_SMALL_STORE = 100
# A Core Data fleet repeats this many different stores.
DIFFERENT_TWINS = 100

# How the rows of a plain store become those of its Core Data twin.
TWIN = """
    INSERT INTO ZFOLDER SELECT id, 1, 1, name FROM original.folder;
    INSERT INTO ZNOTE(Z_PK, Z_ENT, Z_OPT, ZUID, ZTITLE, ZCONTENT, ZCREATED, ZFOLDER)
      SELECT id, 2, 1, uid, title, content, created, folder_id FROM original.note;
    INSERT INTO ZTAG SELECT id, 3, 1, name FROM original.tag;
    INSERT INTO Z_2TAGS(Z_2NOTES, Z_3TAGS) SELECT note_id, tag_id FROM original.note_tag;
    UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT max(Z_PK) FROM ZFOLDER) WHERE Z_NAME = 'Folder';
    UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT max(Z_PK) FROM ZNOTE) WHERE Z_NAME = 'Note';
    UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT max(Z_PK) FROM ZTAG) WHERE Z_NAME = 'Tag';
"""


class Stores:
    """Templates are in `folder`/templates, fresh copies in `folder`/work."""

    def __init__(self, folder, tools, note):
        self.tools = tools
        self.note = note
        self.templates = os.path.join(folder, "templates")
        self.work = os.path.join(folder, "work")
        shutil.rmtree(self.work, ignore_errors=True)
        for path in (self.templates, self.work):
            os.makedirs(path, mode=0o755, exist_ok=True)

    def _template(self, name, make):
        path = os.path.join(self.templates, name)
        if not os.path.exists(path):
            self.note(f"creating {name}")
            unfinished = f"{path}.unfinished"
            remove(unfinished)
            make(unfinished)
            os.rename(unfinished, path)
        return path

    # MARK: One store

    def template(self, notes, format):
        """A store with so many notes. Both formats have the same rows."""
        def make(path):
            if format == "plain":
                run([self.tools.limit("gen"), path, str(notes)])
            else:
                self._make_twin(self.template(notes, "plain"), path)
        return self._template(f"{format}-{notes}.db", make)

    def _empty_twin(self):
        def make(path):
            run([self.tools.app(), "create", path])
            # As gen does, so that the two formats differ in the format only.
            with sqlite3.connect(path) as store:
                store.execute("PRAGMA journal_mode = DELETE")
            store.close()
        return self._template("coredata-empty.db", make)

    def _make_twin(self, original, path):
        shutil.copyfile(self._empty_twin(), path)
        store = sqlite3.connect(path)
        store.execute("PRAGMA synchronous = OFF")
        store.execute("PRAGMA journal_mode = MEMORY")
        store.execute("PRAGMA cache_size = -1000000")
        store.execute("ATTACH ? AS original", (original,))
        store.executescript(f"BEGIN; {TWIN} COMMIT; DETACH original;")
        store.execute("PRAGMA journal_mode = DELETE")
        store.close()

    def fresh(self, notes, format):
        """Copies a template into an empty folder. The copy is durable, so that no measured time writes it."""
        path = os.path.join(self.fresh_folder(), "notes.db")
        shutil.copyfile(self.template(notes, format), path)
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        return path

    def fresh_folder(self):
        remove(self.work)
        os.mkdir(self.work, 0o755)
        return self.work

    # MARK: Many stores

    def fleet_template(self, count, format):
        """Folders of a hundred small stores each."""
        def make(path):
            if format == "plain":
                run([self.tools.limit("gen"), path, str(NOTES_OF_SMALL_STORE), f"stores={count}"])
                return
            originals = self.fleet(self.fleet_template(count, "plain"))
            twins = []
            for number, original in enumerate(originals):
                target = os.path.join(path, os.path.relpath(original, self.fleet_template(count, "plain")))
                os.makedirs(os.path.dirname(target), exist_ok=True)
                if number < DIFFERENT_TWINS:
                    self._make_twin(original, target)
                    twins.append(target)
                else:
                    shutil.copyfile(twins[number % DIFFERENT_TWINS], target)
        return self._template(f"{format}-fleet-{count}", make)

    def fleet(self, folder):
        """The paths of all stores of a fleet."""
        return sorted(
            os.path.join(top, name) for top, _, names in os.walk(folder) for name in names if name.endswith(".db"))

    def fresh_fleet(self, count, format):
        folder = os.path.join(self.fresh_folder(), "fleet")
        shutil.copytree(self.fleet_template(count, format), folder)
        os.sync()
        return folder


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)
