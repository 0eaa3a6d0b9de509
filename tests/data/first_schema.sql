-- A database that was written on the first day (schema 4, without raw_mails.placed), with three mails in flight (its claim was released by hand):
-- one with a running job, one on its way to the queue, one just accepted. Made by that version, then killed.
BEGIN TRANSACTION;
CREATE TABLE alarms (                      -- what the operator was told by mail
  name     TEXT PRIMARY KEY,
  mail     TEXT NOT NULL,                  -- kind of the mail in the outbox; a summary tells of several
  told_at  REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE attachments (
  email_id  TEXT NOT NULL,
  position  INTEGER NOT NULL,
  record    TEXT NOT NULL,                 -- JSON of model.mail.Attachment or RefusedAttachment
  PRIMARY KEY (email_id, position)
) STRICT;
CREATE TABLE claims (
  key               TEXT PRIMARY KEY,
  worker            TEXT NOT NULL,
  fence             INTEGER NOT NULL,
  beat              INTEGER NOT NULL,
  status            TEXT NOT NULL,         -- held | releasing | free
  claimed_at        REAL NOT NULL,
  last_activity_at  REAL NOT NULL,
  lease_expires_at  REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "claims" VALUES('amelia#scott','container-20261118144318-3d2dfbcd',1795012998,0,'free',1.79501299850503802301e+09,1.79501299850503802301e+09,1.795013058505038023e+09);
CREATE TABLE costs (
  cost_id     INTEGER PRIMARY KEY,
  project_id  TEXT NOT NULL,
  day         TEXT NOT NULL,               -- UTC, 2026-05-01
  thread_id   TEXT NOT NULL,
  job_id      TEXT NOT NULL,
  usd         REAL NOT NULL,
  at          REAL NOT NULL
) STRICT;
CREATE TABLE "dead_letters" (
  letter_id  INTEGER PRIMARY KEY AUTOINCREMENT,
  email_id   TEXT NOT NULL,
  job_id     TEXT,
  reason     TEXT NOT NULL,
  died_at    REAL NOT NULL,
  redrives   INTEGER NOT NULL DEFAULT 0,
  UNIQUE (email_id, redrives, reason)
) STRICT;
CREATE TABLE events (
  seq       INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused, so that a reader can go on from the last it saw
  at        REAL NOT NULL,
  kind      TEXT NOT NULL,
  email_id  TEXT,
  job_id    TEXT,
  key       TEXT,
  worker    TEXT,
  data      TEXT NOT NULL
) STRICT;
CREATE TABLE execution_events (
    execution INTEGER NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,  -- events before these
    events    TEXT NOT NULL,
    PRIMARY KEY (execution, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO "execution_events" VALUES(2,0,'[["ExecutionStarted","",1795012999.704741,{"nonce":"b88663abeadd208cdaf234be740b5961"}],["TaskStateEntered","",1795012999.704741,{"name":"ParseEmail"}]]');
INSERT INTO "execution_events" VALUES(2,2,'[["LambdaFunctionScheduled","",1795012999.728162,{"parameters":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2"}}],["LambdaFunctionStarted","",1795012999.728162,{}]]');
INSERT INTO "execution_events" VALUES(2,4,'[["LambdaFunctionSucceeded","",1795012999.747982,{}],["TaskStateExited","",1795012999.747982,{"name":"ParseEmail","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]}}}],["TaskStateEntered","",1795012999.747982,{"name":"AuthenticateSender"}],["LambdaFunctionScheduled","",1795012999.748079,{"parameters":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2"}}],["LambdaFunctionStarted","",1795012999.748079,{}]]');
INSERT INTO "execution_events" VALUES(2,9,'[["LambdaFunctionSucceeded","",1795012999.756443,{}],["TaskStateExited","",1795012999.756443,{"name":"AuthenticateSender","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"}}}],["ChoiceStateEntered","",1795012999.756443,{"name":"Admission"}],["ChoiceStateExited","",1795012999.75656,{"name":"Admission","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"}}}],["TaskStateEntered","",1795012999.75656,{"name":"IdentifyProjectUser"}],["LambdaFunctionScheduled","",1795012999.75665,{"parameters":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0}}],["LambdaFunctionStarted","",1795012999.75665,{}]]');
INSERT INTO "execution_events" VALUES(2,16,'[["LambdaFunctionSucceeded","",1795012999.789023,{}],["TaskStateExited","",1795012999.789023,{"name":"IdentifyProjectUser","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-398e29c98662dbef5a2c","threadId":"2b21faa0dda6235b"}}}],["ChoiceStateEntered","",1795012999.789023,{"name":"CommandOrEdit"}],["ChoiceStateExited","",1795012999.789123,{"name":"CommandOrEdit","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-398e29c98662dbef5a2c","threadId":"2b21faa0dda6235b"}}}],["MapStateEntered","",1795012999.789123,{"name":"ProcessAttachments"}],["MapStateStarted","",1795012999.789177,{"length":0}],["MapStateSucceeded","",1795012999.789177,{}],["MapStateExited","",1795012999.789177,{"name":"ProcessAttachments","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-398e29c98662dbef5a2c","threadId":"2b21faa0dda6235b"}}}],["TaskStateEntered","",1795012999.789177,{"name":"SendToContainer"}],["LambdaFunctionScheduled","",1795012999.789244,{"parameters":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","jobId":"job-398e29c98662dbef5a2c"}}],["LambdaFunctionStarted","",1795012999.789244,{}]]');
INSERT INTO "execution_events" VALUES(2,27,'[["LambdaFunctionSucceeded","",1795012999.792404,{}],["TaskStateExited","",1795012999.792404,{"name":"SendToContainer","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-398e29c98662dbef5a2c","threadId":"2b21faa0dda6235b"}}}],["TaskStateEntered","",1795012999.792404,{"name":"CheckOwnership"}],["LambdaFunctionScheduled","",1795012999.792473,{"parameters":{"jobId":"job-398e29c98662dbef5a2c"}}],["LambdaFunctionStarted","",1795012999.792473,{}]]');
INSERT INTO "execution_events" VALUES(2,32,'[["LambdaFunctionSucceeded","",1795012999.796324,{}],["TaskStateExited","",1795012999.796324,{"name":"CheckOwnership","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-398e29c98662dbef5a2c","threadId":"2b21faa0dda6235b"},"ownership":{"owned":true}}}],["ChoiceStateEntered","",1795012999.796324,{"name":"CheckIfClaimed"}],["ChoiceStateExited","",1795012999.796394,{"name":"CheckIfClaimed","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-398e29c98662dbef5a2c","threadId":"2b21faa0dda6235b"},"ownership":{"owned":true}}}],["TaskStateEntered","",1795012999.796394,{"name":"CheckActiveJob"}],["LambdaFunctionScheduled","",1795012999.796432,{"parameters":{"jobId":"job-398e29c98662dbef5a2c"}}],["LambdaFunctionStarted","",1795012999.796432,{}]]');
INSERT INTO "execution_events" VALUES(2,39,'[["LambdaFunctionSucceeded","",1795012999.848111,{}],["TaskStateExited","",1795012999.848111,{"name":"CheckActiveJob","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-398e29c98662dbef5a2c","threadId":"2b21faa0dda6235b"},"ownership":{"owned":true},"active":{"mustInterrupt":false}}}],["ChoiceStateEntered","",1795012999.848111,{"name":"MustInterrupt"}],["ChoiceStateExited","",1795012999.848256,{"name":"MustInterrupt","output":{"emailId":"398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-398e29c98662dbef5a2c","threadId":"2b21faa0dda6235b"},"ownership":{"owned":true},"active":{"mustInterrupt":false}}}],["TaskStateEntered","",1795012999.848256,{"name":"AwaitResult"}],["TaskScheduled","",1795012999.848327,{"token":"049c1a27baabf70068f1de03bb8816cea279b495adc1e40c67b1c0afa9a7f335","timeoutInSeconds":604800,"parameters":{"FunctionName":"AwaitResult","Payload":{"jobId":"job-398e29c98662dbef5a2c","taskToken":"049c1a27baabf70068f1de03bb8816cea279b495adc1e40c67b1c0afa9a7f335"}}}],["TaskStarted","",1795012999.848327,{}]]');
INSERT INTO "execution_events" VALUES(2,46,'[["TaskSubmitted","",1795012999.879588,{}]]');
INSERT INTO "execution_events" VALUES(5,0,'[["ExecutionStarted","",1795013000.039722,{"nonce":"9fbc28bdebb26b681d3237e727cb71a2"}],["TaskStateEntered","",1795013000.039722,{"name":"ParseEmail"}]]');
INSERT INTO "execution_events" VALUES(5,2,'[["LambdaFunctionScheduled","",1795013000.070793,{"parameters":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2"}}],["LambdaFunctionStarted","",1795013000.070793,{}]]');
INSERT INTO "execution_events" VALUES(5,4,'[["LambdaFunctionSucceeded","",1795013000.080355,{}],["TaskStateExited","",1795013000.080355,{"name":"ParseEmail","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]}}}],["TaskStateEntered","",1795013000.080355,{"name":"AuthenticateSender"}],["LambdaFunctionScheduled","",1795013000.080503,{"parameters":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2"}}],["LambdaFunctionStarted","",1795013000.080503,{}]]');
INSERT INTO "execution_events" VALUES(5,9,'[["LambdaFunctionSucceeded","",1795013000.092195,{}],["TaskStateExited","",1795013000.092195,{"name":"AuthenticateSender","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"}}}],["ChoiceStateEntered","",1795013000.092195,{"name":"Admission"}],["ChoiceStateExited","",1795013000.092262,{"name":"Admission","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"}}}],["TaskStateEntered","",1795013000.092262,{"name":"IdentifyProjectUser"}],["LambdaFunctionScheduled","",1795013000.092305,{"parameters":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0}}],["LambdaFunctionStarted","",1795013000.092305,{}]]');
INSERT INTO "execution_events" VALUES(5,16,'[["LambdaFunctionSucceeded","",1795013000.12272,{}],["TaskStateExited","",1795013000.12272,{"name":"IdentifyProjectUser","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-890f02d4252082f5c846","threadId":"28551bdd5a73c67a"}}}],["ChoiceStateEntered","",1795013000.12272,{"name":"CommandOrEdit"}],["ChoiceStateExited","",1795013000.122806,{"name":"CommandOrEdit","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-890f02d4252082f5c846","threadId":"28551bdd5a73c67a"}}}],["MapStateEntered","",1795013000.122806,{"name":"ProcessAttachments"}],["MapStateStarted","",1795013000.12285,{"length":0}],["MapStateSucceeded","",1795013000.12285,{}],["MapStateExited","",1795013000.12285,{"name":"ProcessAttachments","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-890f02d4252082f5c846","threadId":"28551bdd5a73c67a"}}}],["TaskStateEntered","",1795013000.12285,{"name":"SendToContainer"}],["LambdaFunctionScheduled","",1795013000.122913,{"parameters":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","jobId":"job-890f02d4252082f5c846"}}],["LambdaFunctionStarted","",1795013000.122913,{}]]');
INSERT INTO "execution_events" VALUES(5,27,'[["LambdaFunctionSucceeded","",1795013000.142858,{}],["TaskStateExited","",1795013000.142858,{"name":"SendToContainer","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-890f02d4252082f5c846","threadId":"28551bdd5a73c67a"}}}],["TaskStateEntered","",1795013000.142858,{"name":"CheckOwnership"}],["LambdaFunctionScheduled","",1795013000.142944,{"parameters":{"jobId":"job-890f02d4252082f5c846"}}],["LambdaFunctionStarted","",1795013000.142944,{}]]');
INSERT INTO "execution_events" VALUES(5,32,'[["LambdaFunctionSucceeded","",1795013000.172561,{}],["TaskStateExited","",1795013000.172561,{"name":"CheckOwnership","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-890f02d4252082f5c846","threadId":"28551bdd5a73c67a"},"ownership":{"owned":true}}}],["ChoiceStateEntered","",1795013000.172561,{"name":"CheckIfClaimed"}],["ChoiceStateExited","",1795013000.172646,{"name":"CheckIfClaimed","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-890f02d4252082f5c846","threadId":"28551bdd5a73c67a"},"ownership":{"owned":true}}}],["TaskStateEntered","",1795013000.172646,{"name":"CheckActiveJob"}],["LambdaFunctionScheduled","",1795013000.172684,{"parameters":{"jobId":"job-890f02d4252082f5c846"}}],["LambdaFunctionStarted","",1795013000.172684,{}]]');
INSERT INTO "execution_events" VALUES(5,39,'[["LambdaFunctionSucceeded","",1795013000.177907,{}],["TaskStateExited","",1795013000.177907,{"name":"CheckActiveJob","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-890f02d4252082f5c846","threadId":"28551bdd5a73c67a"},"ownership":{"owned":true},"active":{"mustInterrupt":true,"jobId":"job-398e29c98662dbef5a2c"}}}],["ChoiceStateEntered","",1795013000.177907,{"name":"MustInterrupt"}],["ChoiceStateExited","",1795013000.177969,{"name":"MustInterrupt","output":{"emailId":"890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2","redrive":0,"mail":{"attachments":[]},"sender":{"verdict":"admitted"},"job":{"route":"edit","jobId":"job-890f02d4252082f5c846","threadId":"28551bdd5a73c67a"},"ownership":{"owned":true},"active":{"mustInterrupt":true,"jobId":"job-398e29c98662dbef5a2c"}}}],["TaskStateEntered","",1795013000.177969,{"name":"SendInterrupt"}],["LambdaFunctionScheduled","",1795013000.178005,{"parameters":{"activeJobId":"job-398e29c98662dbef5a2c","jobId":"job-890f02d4252082f5c846"}}],["LambdaFunctionStarted","",1795013000.178005,{}]]');
INSERT INTO "execution_events" VALUES(6,0,'[["ExecutionStarted","",1795013000.143137,{"nonce":"1caaac63da5b9582658f05f27ba10dde"}],["TaskStateEntered","",1795013000.143137,{"name":"ParseEmail"}]]');
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
INSERT INTO "executions" VALUES(2,'398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2','69068066b72ba262042c0f6a9a757fbda311dc6bd5854abf988820eee92fefea','RUNNING','{"emailId": "398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2", "redrive": 0}',NULL,NULL,NULL,1.79501299970468902594e+09,NULL,47,1.79561779984832692149e+09);
INSERT INTO "executions" VALUES(5,'890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2','69068066b72ba262042c0f6a9a757fbda311dc6bd5854abf988820eee92fefea','RUNNING','{"emailId": "890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2", "redrive": 0}',NULL,NULL,NULL,1.79501300003965497012e+09,NULL,46,0.0);
INSERT INTO "executions" VALUES(6,'68f7ef9036428850165d5f4429ffac5ad29a14b834dfe42355010a387bbc89ee','69068066b72ba262042c0f6a9a757fbda311dc6bd5854abf988820eee92fefea','RUNNING','{"emailId": "68f7ef9036428850165d5f4429ffac5ad29a14b834dfe42355010a387bbc89ee", "redrive": 0}',NULL,NULL,NULL,1.79501300014311408999e+09,NULL,2,0.0);
CREATE TABLE hints (                       -- the unclaimed queue: at most one hint per key
  key            TEXT PRIMARY KEY,
  waiting_since  REAL NOT NULL,
  preferred      TEXT,                     -- the worker that still has the checkout
  sent_at        REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE interruptions (               -- the audit of what was interrupted, kept 30 days
  interruption_id  INTEGER PRIMARY KEY,
  email_id         TEXT NOT NULL,
  job_id           TEXT NOT NULL,
  worker           TEXT NOT NULL,
  times            INTEGER NOT NULL,
  reason           TEXT NOT NULL,
  at               REAL NOT NULL
) STRICT;
CREATE TABLE interrupts (
  key            TEXT NOT NULL,
  job_id         TEXT NOT NULL,
  new_thread_id  TEXT NOT NULL,
  reason         TEXT NOT NULL,
  sent_at        REAL NOT NULL,
  PRIMARY KEY (key, job_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (                        -- the truth about work
  id                INTEGER PRIMARY KEY,
  job_id            TEXT NOT NULL UNIQUE,
  key               TEXT NOT NULL,
  ord               INTEGER NOT NULL,      -- its place in the key's queue; an interruption moves it to the tail
  thread_ord        INTEGER NOT NULL,      -- its place in its thread; never changes
  thread_id         TEXT NOT NULL,
  email_id          TEXT NOT NULL,
  command           TEXT NOT NULL,
  state             TEXT NOT NULL,         -- preparing | queued | running | settled
  outcome           TEXT,
  attempts          INTEGER NOT NULL DEFAULT 0,
  interruptions     INTEGER NOT NULL DEFAULT 0,
  worker            TEXT,
  fence             INTEGER NOT NULL DEFAULT 0,
  cancel_requested  INTEGER NOT NULL DEFAULT 0,
  task_token        TEXT,                  -- whom to call back when it settles
  preempted_token   TEXT,                  -- whom to tell that it was interrupted
  called_back       INTEGER NOT NULL DEFAULT 0,
  result            TEXT,                  -- JSON of model.jobs.JobResult
  recorded_at       REAL NOT NULL,
  queued_at         REAL,
  not_before        REAL,
  started_at        REAL,
  settled_at        REAL
) STRICT;
INSERT INTO "jobs" VALUES(2,'job-398e29c98662dbef5a2c','amelia#scott',2,2,'2b21faa0dda6235b','398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2','edit','running',NULL,1,0,'container-20261118144318-3d2dfbcd',1795012998,0,'049c1a27baabf70068f1de03bb8816cea279b495adc1e40c67b1c0afa9a7f335',NULL,0,NULL,1.79501299977996611593e+09,1.79501299977996611593e+09,NULL,1.79501299979311895369e+09,NULL);
INSERT INTO "jobs" VALUES(5,'job-890f02d4252082f5c846','amelia#scott',5,5,'28551bdd5a73c67a','890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2','edit','queued',NULL,0,0,NULL,0,0,NULL,NULL,0,NULL,1.79501300011586308481e+09,1.79501300011586308481e+09,NULL,NULL,NULL);
CREATE TABLE keys (                        -- the order counter outlives finished jobs
  key         TEXT PRIMARY KEY,
  last_order  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "keys" VALUES('amelia#scott',5);
CREATE TABLE outbox (                      -- a reply is written once per (mail, kind), then delivered until done
  outbox_id     INTEGER PRIMARY KEY,
  email_id      TEXT NOT NULL,
  kind          TEXT NOT NULL,
  recipient     TEXT NOT NULL,
  message_id    TEXT NOT NULL,
  raw           BLOB NOT NULL,
  created_at    REAL NOT NULL,
  sent_at       REAL,
  attempts      INTEGER NOT NULL DEFAULT 0,
  next_try_at   REAL NOT NULL,
  last_error    TEXT,
  given_up      INTEGER NOT NULL DEFAULT 0,
  UNIQUE (email_id, kind)
) STRICT;
CREATE TABLE parsed_mails (
  email_id    TEXT PRIMARY KEY,
  message_id  TEXT NOT NULL,
  sender      TEXT NOT NULL,
  subject     TEXT NOT NULL,
  record      TEXT NOT NULL,               -- JSON of model.mail.ParsedMail
  parsed_at   REAL NOT NULL
) STRICT;
INSERT INTO "parsed_mails" VALUES('398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2','<m1@x>','scott@example.com','S1','{"message_id": "<m1@x>", "sender": "scott@example.com", "sender_name": "", "subject": "S1", "sent_at": null, "in_reply_to": [], "references": [], "text": "Set the title to T1", "elided": "", "command": "edit", "attachment_count": 0, "automatic": false, "refused_attachments": []}',1.79501299973662209507e+09);
INSERT INTO "parsed_mails" VALUES('890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2','<m4@x>','scott@example.com','S4','{"message_id": "<m4@x>", "sender": "scott@example.com", "sender_name": "", "subject": "S4", "sent_at": null, "in_reply_to": [], "references": [], "text": "Set the title to T4", "elided": "", "command": "edit", "attachment_count": 0, "automatic": false, "refused_attachments": []}',1.79501300007663393016e+09);
CREATE TABLE project_leases (              -- who may publish a project; over as soon as its job does not run
  project_id  TEXT PRIMARY KEY,
  fence       INTEGER NOT NULL,
  worker      TEXT NOT NULL,
  job_id      TEXT NOT NULL,
  job_fence   INTEGER NOT NULL,
  status      TEXT NOT NULL                -- held | free
) STRICT, WITHOUT ROWID;
INSERT INTO "project_leases" VALUES('amelia',1795012998,'container-20261118144318-3d2dfbcd','job-9628c9ffe19726b69de3',1795012998,'free');
CREATE TABLE projects (
  project_id  TEXT PRIMARY KEY,
  settings    TEXT NOT NULL,               -- JSON of model.projects.Project
  created_at  REAL NOT NULL
) STRICT;
INSERT INTO "projects" VALUES('amelia','{"project_id": "amelia", "repo": "origins/amelia.git", "builder": "", "agent": "builtin", "default_instruction": "", "daily_cap_usd": 0.0, "paused": false}',1.79501299482809305186e+09);
CREATE TABLE raw_mails (                   -- one row per accepted (mail, recipient); the file is on disk first
  email_id     TEXT PRIMARY KEY,
  path         TEXT NOT NULL,              -- relative to the data folder
  peer         TEXT NOT NULL,
  mail_from    TEXT NOT NULL,
  recipient    TEXT NOT NULL,
  size         INTEGER NOT NULL,
  received_at  REAL NOT NULL,
  started      INTEGER NOT NULL DEFAULT 0  -- its workflow was started
) STRICT;
INSERT INTO "raw_mails" VALUES('398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2','mail/39/398e29c98662dbef5a2c1657b51cb4c610281285cd290b932e06c00d2a74f4d2.eml','127.0.0.1','scott@example.com','edit@localhost',101,1.79501299967733192442e+09,1);
INSERT INTO "raw_mails" VALUES('890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2','mail/89/890f02d4252082f5c846f32ed4af05c35e69f1f78488b9c6f43d313b68c3f3f2.eml','127.0.0.1','scott@example.com','edit@localhost',101,1.79501300000757193567e+09,1);
INSERT INTO "raw_mails" VALUES('68f7ef9036428850165d5f4429ffac5ad29a14b834dfe42355010a387bbc89ee','mail/68/68f7ef9036428850165d5f4429ffac5ad29a14b834dfe42355010a387bbc89ee.eml','127.0.0.1','scott@example.com','edit@localhost',101,1.79501300012074589728e+09,1);
CREATE TABLE senders (
  address     TEXT NOT NULL,               -- lower case
  project_id  TEXT NOT NULL REFERENCES projects (project_id),
  user_id     TEXT NOT NULL,
  created_at  REAL NOT NULL,
  PRIMARY KEY (address, project_id)
) STRICT;
INSERT INTO "senders" VALUES('scott@example.com','amelia','scott',1.79501299484247088438e+09);
CREATE TABLE tallies (                     -- counts of events, kept before the events themselves are forgotten
  tally_id  INTEGER PRIMARY KEY CHECK (tally_id = 1),
  record    TEXT NOT NULL                  -- JSON of pool.tally.Tally
) STRICT;
INSERT INTO "tallies" VALUES(1,'{"seq": 0, "kinds": {}, "bounds": [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0], "histograms": {}}');
CREATE TABLE task_tokens (
    token     TEXT PRIMARY KEY,
    execution INTEGER NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    outcome   TEXT,  -- the first answer, until the engine takes it
    beat_at   REAL
) STRICT, WITHOUT ROWID;
INSERT INTO "task_tokens" VALUES('049c1a27baabf70068f1de03bb8816cea279b495adc1e40c67b1c0afa9a7f335',2,NULL,NULL);
CREATE TABLE thread_messages (
  message_id  TEXT PRIMARY KEY,
  thread_id   TEXT NOT NULL REFERENCES threads (thread_id)
) STRICT;
INSERT INTO "thread_messages" VALUES('<m1@x>','2b21faa0dda6235b');
INSERT INTO "thread_messages" VALUES('<m4@x>','28551bdd5a73c67a');
CREATE TABLE threads (
  thread_id      TEXT PRIMARY KEY,
  key            TEXT NOT NULL,
  subject        TEXT NOT NULL,
  agent_session  TEXT NOT NULL DEFAULT '',
  created_at     REAL NOT NULL
) STRICT;
INSERT INTO "threads" VALUES('2b21faa0dda6235b','amelia#scott','S1','',1.79501299976662492753e+09);
INSERT INTO "threads" VALUES('28551bdd5a73c67a','amelia#scott','S4','',1.79501300010844302176e+09);
CREATE TABLE workers (
  worker      TEXT PRIMARY KEY,
  name        TEXT NOT NULL,               -- what the page calls it
  pid         INTEGER NOT NULL,
  slots       INTEGER NOT NULL,
  started_at  REAL NOT NULL,
  ended_at    REAL
) STRICT, WITHOUT ROWID;
CREATE TABLE workflow_definitions (
    digest TEXT PRIMARY KEY,
    text   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "workflow_definitions" VALUES('69068066b72ba262042c0f6a9a757fbda311dc6bd5854abf988820eee92fefea','{"definition":{"Comment":"From a stored mail to its answer. One file for both engines; it carries ids and pointers, never bodies.","StartAt":"ParseEmail","States":{"Admission":{"Choices":[{"Next":"IdentifyProjectUser","StringEquals":"admitted","Variable":"$.sender.verdict"},{"Next":"Held","StringEquals":"held","Variable":"$.sender.verdict"}],"Default":"Refused","Type":"Choice"},"Answered":{"Type":"Succeed"},"AuthenticateSender":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"GiveUp","ResultPath":"$.error"}],"Next":"Admission","Parameters":{"emailId.$":"$.emailId"},"Resource":"AuthenticateSender","ResultPath":"$.sender","Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"AwaitResult":{"Catch":[{"ErrorEquals":["PREEMPTED"],"Next":"RecordInterruption","ResultPath":"$.error"},{"ErrorEquals":["States.Timeout"],"Next":"HandleTimeout","ResultPath":"$.error"},{"ErrorEquals":["States.ALL"],"Next":"GiveUp","ResultPath":"$.error"}],"Comment":"No HeartbeatSeconds: queueing must not time out. The worker bounds its own job, this bounds the whole.","Next":"Reply","Parameters":{"FunctionName":"AwaitResult","Payload":{"jobId.$":"$.job.jobId","taskToken.$":"$$.Task.Token"}},"Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken","ResultPath":"$.result","Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"TimeoutSeconds":604800,"Type":"Task"},"Broken":{"CausePath":"$.error.Cause","ErrorPath":"$.error.Error","Type":"Fail"},"CheckActiveJob":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"AwaitResult","ResultPath":"$.error"}],"Next":"MustInterrupt","Parameters":{"jobId.$":"$.job.jobId"},"Resource":"CheckActiveJob","ResultPath":"$.active","Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"CheckIfClaimed":{"Choices":[{"BooleanEquals":true,"Next":"CheckActiveJob","Variable":"$.ownership.owned"}],"Default":"SendClaimRequest","Type":"Choice"},"CheckOwnership":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"AwaitResult","ResultPath":"$.error"}],"Comment":"Enqueue first, look at ownership after. This step only looks: only workers write ownership.","Next":"CheckIfClaimed","Parameters":{"jobId.$":"$.job.jobId"},"Resource":"CheckOwnership","ResultPath":"$.ownership","Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"CommandOrEdit":{"Choices":[{"Next":"ProcessAttachments","StringEquals":"edit","Variable":"$.job.route"},{"Next":"SendToContainer","StringEquals":"queue","Variable":"$.job.route"},{"Next":"RunCommand","StringEquals":"command","Variable":"$.job.route"}],"Default":"Reply","Type":"Choice"},"GiveUp":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Broken","ResultPath":"$.error"}],"Comment":"Dead letter with its reason; the reply says so honestly.","Next":"Reply","Resource":"GiveUp","ResultPath":"$.answer","Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"HandleTimeout":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Reply","ResultPath":"$.error"}],"Next":"Reply","Parameters":{"emailId.$":"$.emailId","jobId.$":"$.job.jobId"},"Resource":"HandleTimeout","ResultPath":null,"Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"Held":{"Type":"Succeed"},"IdentifyProjectUser":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"GiveUp","ResultPath":"$.error"}],"Comment":"The job is recorded here, as preparing, and gets its order.","Next":"CommandOrEdit","Parameters":{"emailId.$":"$.emailId","redrive.$":"$.redrive"},"Resource":"IdentifyProjectUser","ResultPath":"$.job","Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"MustInterrupt":{"Choices":[{"BooleanEquals":true,"Next":"SendInterrupt","Variable":"$.active.mustInterrupt"}],"Default":"AwaitResult","Type":"Choice"},"ParseEmail":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"GiveUp","ResultPath":"$.error"}],"Next":"AuthenticateSender","Parameters":{"emailId.$":"$.emailId"},"Resource":"ParseEmail","ResultPath":"$.mail","Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"ProcessAttachments":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"GiveUp","ResultPath":"$.error"}],"ItemProcessor":{"ProcessorConfig":{"Mode":"INLINE"},"StartAt":"StoreAttachment","States":{"StoreAttachment":{"End":true,"Resource":"StoreAttachment","ResultPath":null,"Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"}}},"ItemsPath":"$.mail.attachments","MaxConcurrency":4,"Next":"SendToContainer","ResultPath":null,"Type":"Map"},"RecordInterruption":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"SendToContainer","ResultPath":"$.error"}],"Next":"SendToContainer","Parameters":{"emailId.$":"$.emailId","jobId.$":"$.job.jobId"},"Resource":"RecordInterruption","ResultPath":null,"Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"Refused":{"Type":"Succeed"},"Reply":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Broken","ResultPath":"$.error"}],"Next":"Answered","Resource":"Reply","ResultPath":null,"Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"RunCommand":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"GiveUp","ResultPath":"$.error"}],"Comment":"status and stop never queue.","Next":"Reply","Parameters":{"command.$":"$.job.command","emailId.$":"$.emailId","threadId.$":"$.job.threadId"},"Resource":"RunCommand","ResultPath":"$.answer","Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"SendClaimRequest":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"AwaitResult","ResultPath":"$.error"}],"Next":"CheckActiveJob","Parameters":{"jobId.$":"$.job.jobId"},"Resource":"SendClaimRequest","ResultPath":null,"Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"SendInterrupt":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"AwaitResult","ResultPath":"$.error"}],"Next":"AwaitResult","Parameters":{"activeJobId.$":"$.active.jobId","jobId.$":"$.job.jobId"},"Resource":"SendInterrupt","ResultPath":null,"Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"},"SendToContainer":{"Catch":[{"ErrorEquals":["States.ALL"],"Next":"GiveUp","ResultPath":"$.error"}],"Next":"CheckOwnership","Parameters":{"emailId.$":"$.emailId","jobId.$":"$.job.jobId"},"Resource":"SendToContainer","ResultPath":null,"Retry":[{"BackoffRate":2,"ErrorEquals":["Transient","Lambda.ServiceException","Lambda.AWSLambdaException","Lambda.SdkClientException","Lambda.ClientExecutionTimeoutException","Lambda.TooManyRequestsException"],"IntervalSeconds":1,"JitterStrategy":"FULL","MaxAttempts":6}],"Type":"Task"}}},"name":"StateMachine"}');
CREATE INDEX raw_mails_without_workflow ON raw_mails (received_at) WHERE started = 0;
CREATE INDEX raw_mails_by_time ON raw_mails (received_at);
CREATE INDEX outbox_unsent ON outbox (next_try_at) WHERE sent_at IS NULL AND given_up = 0;
CREATE UNIQUE INDEX open_jobs ON jobs (key, ord) WHERE state <> 'settled';
CREATE INDEX open_threads ON jobs (key, thread_id, thread_ord) WHERE state <> 'settled';
CREATE INDEX owed_callbacks ON jobs (id)
  WHERE (state = 'settled' AND called_back = 0 AND task_token IS NOT NULL) OR preempted_token IS NOT NULL;
CREATE INDEX finished_jobs ON jobs (settled_at) WHERE state = 'settled';
CREATE INDEX jobs_of_mail ON jobs (email_id);
CREATE INDEX claims_of_worker ON claims (worker) WHERE status = 'held';
CREATE INDEX hints_by_wait ON hints (waiting_since);
CREATE INDEX events_of_mail ON events (email_id, seq) WHERE email_id IS NOT NULL;
CREATE INDEX executions_due ON executions (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX executions_finished ON executions (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX executions_by_definition ON executions (definition);
CREATE INDEX task_tokens_of ON task_tokens (execution);
CREATE INDEX alarms_by_time ON alarms (told_at);
CREATE INDEX outbox_given_up ON outbox (outbox_id) WHERE given_up = 1;
CREATE INDEX costs_by_day ON costs (project_id, day);
CREATE INDEX costs_by_job ON costs (job_id);
COMMIT;
PRAGMA user_version = 4;
