-- billing.py
CREATE TABLE orders (job serial PRIMARY KEY);
CREATE TABLE bills (job integer NOT NULL);

-- leader
CREATE TABLE plan (body text, term bigint);
INSERT INTO plan VALUES ('', 0);
CREATE TABLE plan_history (n serial PRIMARY KEY, term bigint);

-- scheduler.py
CREATE TABLE locks (name text PRIMARY KEY);
INSERT INTO locks VALUES ('scheduler');
CREATE TABLE triggers (job text PRIMARY KEY, next_fire timestamptz);
INSERT INTO triggers SELECT 'job-' || n, now() FROM generate_series(1, 5) n;
CREATE TABLE runs (job text, fire timestamptz);

-- migrate
CREATE TABLE applied (n int NOT NULL);
