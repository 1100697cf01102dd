"""Django's migration operations on one store, run by its schema editor as 'manage.py migrate' does."""

import sys

import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=[],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[-1]}})
django.setup()

from django.db import connection, migrations, models  # noqa: E402  The settings come first.
from django.db.migrations.state import ModelState, ProjectState  # noqa: E402

from common import reversed_words, run  # noqa: E402


def initial_state():
    state = ProjectState()
    state.add_model(ModelState(
        "notes", "Folder",
        [("id", models.IntegerField(primary_key=True)), ("name", models.TextField())],
        options={"db_table": "folder"}))
    state.add_model(ModelState(
        "notes", "Note",
        [("id", models.IntegerField(primary_key=True)), ("uid", models.TextField(unique=True)),
         ("title", models.TextField()), ("content", models.TextField()), ("created", models.FloatField()),
         ("folder", models.ForeignKey("notes.Folder", models.SET_NULL, null=True))],
        options={"db_table": "note"}))
    return state


def migrate(*operations):
    migration = migrations.Migration("migration", "notes")
    migration.operations = list(operations)
    with connection.schema_editor(atomic=True) as editor:
        migration.apply(initial_state(), editor)
    connection.close()


def add(_):
    migrate(migrations.AddField("note", "pinned", models.IntegerField(null=True)))


def rename(_):
    migrate(migrations.RenameField("note", "title", "heading"))


def drop(_):
    migrate(migrations.RemoveField("note", "created"))


def objects(_):
    def fill(apps, _):
        for note in apps.get_model("notes", "Note").objects.iterator():
            note.content2 = reversed_words(note.content)
            note.save(update_fields=["content2"])
    migrate(
        migrations.AddField("note", "content2", models.TextField(null=True)), migrations.RunPython(fill),
        migrations.RemoveField("note", "content"))


run({"add": add, "rename": rename, "drop": drop, "objects": objects})
