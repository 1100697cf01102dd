"""Alembic's operations on one store, as a revision script has them: ALTER TABLE where SQLite can add a column, batch mode
(a new table, all rows copied) otherwise."""

import alembic.migration
import alembic.operations
import sqlalchemy

from common import reversed_words, run


def revision(path, upgrade):
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        context = alembic.migration.MigrationContext.configure(connection)
        upgrade(alembic.operations.Operations(context), connection)
    engine.dispose()


def add(path):
    def upgrade(op, _):
        op.add_column("note", sqlalchemy.Column("pinned", sqlalchemy.Integer))
    revision(path, upgrade)


def rename(path):
    def upgrade(op, _):
        with op.batch_alter_table("note") as batch:
            batch.alter_column("title", new_column_name="heading")
    revision(path, upgrade)


def drop(path):
    def upgrade(op, _):
        with op.batch_alter_table("note") as batch:
            batch.drop_column("created")
    revision(path, upgrade)


def objects(path):
    def upgrade(op, connection):
        op.add_column("note", sqlalchemy.Column("content2", sqlalchemy.Text))
        note = sqlalchemy.table("note", *map(sqlalchemy.column, ("id", "content", "content2")))
        for row in connection.execute(sqlalchemy.select(note.c.id, note.c.content)).all():
            connection.execute(
                note.update().where(note.c.id == row.id).values(content2=reversed_words(row.content)))
        with op.batch_alter_table("note") as batch:
            batch.drop_column("content")
    revision(path, upgrade)


run({"add": add, "rename": rename, "drop": drop, "objects": objects})
