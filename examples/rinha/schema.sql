-- Run by each instance before it listens: every statement may be repeated.
CREATE EXTENSION IF NOT EXISTS pg_trgm;

CREATE TABLE IF NOT EXISTS pessoas (
    id         uuid         PRIMARY KEY,
    apelido    varchar(32)  NOT NULL UNIQUE,
    nome       varchar(100) NOT NULL,
    nascimento date         NOT NULL,
    -- JSON as it was sent, or NULL.
    stack      text,
    -- What is searched: nickname, name and stack in lower case, each followed by the separator U+001F.
    busca      text         NOT NULL
);

-- The default signature of 12 bytes is full of ones with texts of this length, and then excludes nothing.
CREATE INDEX IF NOT EXISTS pessoas_busca ON pessoas USING gist (busca gist_trgm_ops (siglen = 512));
