-- Executions of the workflow. A history is only ever appended to; the row in `executions` says where it stands.
CREATE TABLE workflow_definitions (
    digest TEXT PRIMARY KEY,
    text   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE executions (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    definition  TEXT NOT NULL REFERENCES workflow_definitions (digest),
    status      TEXT NOT NULL,
    input       TEXT NOT NULL,
    output      TEXT,
    error       TEXT,
    cause       TEXT,
    started_at  REAL NOT NULL,
    finished_at REAL,
    seq         INTEGER NOT NULL,  -- events stored
    look_at     REAL               -- when the engine must look again; 0 = at once; NULL = it waits for a token, or is done
) STRICT;

CREATE INDEX executions_due ON executions (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX executions_finished ON executions (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX executions_by_definition ON executions (definition);

-- One row per append: all events of one step, as JSON.
CREATE TABLE execution_events (
    execution INTEGER NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,  -- events before these
    events    TEXT NOT NULL,
    PRIMARY KEY (execution, seq)
) STRICT, WITHOUT ROWID;

-- Open task tokens. A token that is not here is lost.
CREATE TABLE task_tokens (
    token     TEXT PRIMARY KEY,
    execution INTEGER NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    outcome   TEXT,  -- the first answer, until the engine takes it
    beat_at   REAL
) STRICT, WITHOUT ROWID;

CREATE INDEX task_tokens_of ON task_tokens (execution);
