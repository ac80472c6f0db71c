CREATE TABLE weft_queues (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, taken INTEGER NOT NULL DEFAULT 0);
INSERT INTO weft_queues VALUES(1,'bank',1099511627784);
INSERT INTO weft_queues VALUES(2,'bank.dead',2199023255552);
CREATE TABLE weft_bindings (
            type TEXT NOT NULL, queue_id INTEGER NOT NULL, PRIMARY KEY (type, queue_id)) WITHOUT ROWID;
INSERT INTO weft_bindings VALUES('bank.deposit',1);
INSERT INTO weft_bindings VALUES('shop.orderPlaced',1);
INSERT INTO weft_bindings VALUES('shop.paymentLate',1);
INSERT INTO weft_bindings VALUES('shop.remind',1);
CREATE TABLE weft_messages (
            id INTEGER PRIMARY KEY, type TEXT NOT NULL, redelivered INTEGER NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL);
INSERT INTO weft_messages VALUES(1099511627784,'bank.deposit',0,'{"message-id":"01a2065a-ed5d-71e9-8dbe-023ccee4b92c","weft-kind":"command","weft-order-key":"bank.deposit:4711"}','{"account":"4711","cents":400}');
INSERT INTO weft_messages VALUES(1099511627785,'shop.remind',0,'{"message-id":"01a2065a-ed5f-73ec-a49f-cea77bdf2776","weft-kind":"command"}','{"text":"waiting"}');
INSERT INTO weft_messages VALUES(2199023255553,'bank.deposit',0,'{"weft-error-class":"DomainException","weft-error-message":"negative","weft-error-stack":"/app/bank.php:24\n  Bank->deposit()\n","weft-failed-handler":"Bank::deposit","weft-failed-at":"2026-11-23T03:02:31.844390Z","weft-failed-queue":"bank","weft-attempts":"1","message-id":"01a2065a-ebfd-7249-9aa0-23349d150081","weft-kind":"command","weft-order-key":"bank.deposit:4712"}','{"account":"4712","cents":-1}');
CREATE TABLE weft_consumers (
            id INTEGER PRIMARY KEY AUTOINCREMENT, lock TEXT NOT NULL);
CREATE TABLE weft_claims (
            id INTEGER PRIMARY KEY AUTOINCREMENT, queue_id INTEGER NOT NULL, consumer_id INTEGER, batch INTEGER NOT NULL,
            first INTEGER NOT NULL, last INTEGER NOT NULL, redelivered INTEGER NOT NULL DEFAULT 0);
INSERT INTO weft_claims VALUES(2,1,NULL,1,1099511627784,1099511627784,1);
CREATE TABLE weft_inbox (
                message_id VARCHAR(64) NOT NULL, consumer BIGINT NOT NULL, body BIGINT NOT NULL, handled_at BIGINT NOT NULL,
                PRIMARY KEY (message_id, consumer));
INSERT INTO weft_inbox VALUES('019aae00-0000-7000-8000-000000000003',42,-4711,1763800000);
CREATE TABLE weft_outbox (
                id VARCHAR(64) NOT NULL PRIMARY KEY, type VARCHAR(200) NOT NULL, must_route SMALLINT NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL);
INSERT INTO weft_outbox VALUES('019aae00-0000-7000-8000-000000000002','shop.remind',1,'{"weft-message-id":"019aae00-0000-7000-8000-000000000002"}',X'7b2274657874223a2266726f6d20746865206f7574626f78227d');
CREATE TABLE weft_attempts (
                message_id VARCHAR(64) NOT NULL, consumer BIGINT NOT NULL, attempts INT NOT NULL, noted_at BIGINT NOT NULL,
                PRIMARY KEY (message_id, consumer));
INSERT INTO weft_attempts VALUES('019aae00-0000-7000-8000-000000000001',42,2,1763800000);
CREATE TABLE weft_delayed (
                id VARCHAR(96) NOT NULL PRIMARY KEY, due BIGINT NOT NULL, queue VARCHAR(250) NOT NULL, type VARCHAR(200) NOT NULL,
                must_route SMALLINT NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL);
INSERT INTO weft_delayed VALUES('01a2065a-ec8a-7228-95cd-5928d4575df8',1795403851819,'','shop.paymentLate',1,'{"message-id":"01a2065a-ec8a-7228-95cd-5928d4575df8","weft-kind":"command","correlation-id":"01a2065a-ec11-757e-a451-8f9030886545","weft-saga-id":"7"}',X'7b7d');
INSERT INTO weft_delayed VALUES('01a2065a-ec90-7486-9aef-b3b1fb19b57f',1795403851825,'','shop.paymentLate',1,'{"message-id":"01a2065a-ec90-7486-9aef-b3b1fb19b57f","weft-kind":"command","correlation-id":"01a2065a-ec22-716f-86c9-1458ebfeb8bc","weft-saga-id":"8"}',X'7b7d');
INSERT INTO weft_delayed VALUES('01a2065a-ed46-74bf-b5db-d07e74c28e18',1924992000000,'','shop.remind',1,'{"message-id":"01a2065a-ed46-74bf-b5db-d07e74c28e18","weft-kind":"command"}',X'7b2274657874223a226c61746572227d');
INSERT INTO weft_delayed VALUES('01a2065a-ed50-706e-bdb1-820d2a441809',1925078400000,'','shop.remind',1,'{"message-id":"01a2065a-ed50-706e-bdb1-820d2a441809","weft-kind":"command","weft-claim":"01a2065a-ed50-706e-bdb1-820d2a441809"}',X'7b22776566742d636c61696d223a2230316132303635612d656435302d373036652d626462312d383230643261343431383039222c226279746573223a3136312c22736861323536223a2263326266633564633864346631373832613637643634383538383138373366313465633931383830386462386662653834306539333139613062336263306130227d');
CREATE TABLE weft_schedules (
                name VARCHAR(200) NOT NULL PRIMARY KEY, rule VARCHAR(200) NOT NULL, due BIGINT NOT NULL);
INSERT INTO weft_schedules VALUES('daily report','0 6 * * * UTC',1795413600);
CREATE TABLE weft_keys (
                queue VARCHAR(250) NOT NULL, order_key VARCHAR(200) NOT NULL, head VARCHAR(64) NOT NULL, blocked_at BIGINT NOT NULL,
                released SMALLINT NOT NULL, PRIMARY KEY (queue, order_key));
INSERT INTO weft_keys VALUES('bank','bank.deposit:4712','01a2065a-ebfd-7249-9aa0-23349d150081',1795402951,0);
CREATE TABLE weft_waiting (
                place INTEGER PRIMARY KEY AUTOINCREMENT, queue VARCHAR(250) NOT NULL, order_key VARCHAR(200) NOT NULL, message_id VARCHAR(64) NOT NULL,
                type VARCHAR(200) NOT NULL, headers TEXT NOT NULL, body BLOB NOT NULL, UNIQUE (queue, message_id));
INSERT INTO weft_waiting VALUES(1,'bank','bank.deposit:4712','01a2065a-ec01-774c-90ca-78eddcdf6ecb','bank.deposit','{"message-id":"01a2065a-ec01-774c-90ca-78eddcdf6ecb","weft-kind":"command","weft-order-key":"bank.deposit:4712"}',X'7b226163636f756e74223a2234373132222c2263656e7473223a3230307d');
INSERT INTO weft_waiting VALUES(2,'bank','bank.deposit:4712','01a2065a-ec04-71c7-a092-e85ae18c2286','bank.deposit','{"message-id":"01a2065a-ec04-71c7-a092-e85ae18c2286","weft-kind":"command","weft-order-key":"bank.deposit:4712"}',X'7b226163636f756e74223a2234373132222c2263656e7473223a3330307d');
CREATE TABLE weft_rates (name VARCHAR(255) NOT NULL PRIMARY KEY, next BIGINT NOT NULL);
INSERT INTO weft_rates VALUES('gateway',1795402951907987);
CREATE TABLE weft_sagas (saga VARCHAR(100) NOT NULL, id VARCHAR(200) NOT NULL, version BIGINT NOT NULL, status VARCHAR(16) NOT NULL, schema_version INT NOT NULL, state TEXT NOT NULL, started_at BIGINT NOT NULL, expires_at BIGINT, ended_at BIGINT, reason TEXT NOT NULL, PRIMARY KEY (saga, id));
INSERT INTO weft_sagas VALUES('checkout','7',1,'active',1,'{"open":20}',1795402951818,1797994951818,NULL,'');
INSERT INTO weft_sagas VALUES('checkout','8',1,'active',1,'{"open":30}',1795402951824,1797994951824,NULL,'');
CREATE TABLE weft_saga_values (saga VARCHAR(100) NOT NULL, name VARCHAR(100) NOT NULL, value VARCHAR(200) NOT NULL, id VARCHAR(200) NOT NULL, PRIMARY KEY (saga, name, value));
INSERT INTO weft_saga_values VALUES('checkout','parcel','parcel of 7','7');
INSERT INTO weft_saga_values VALUES('checkout','parcel','parcel of 8','8');
CREATE TABLE weft_locks (name VARCHAR(200) NOT NULL PRIMARY KEY, owner VARCHAR(64) NOT NULL, fence BIGINT NOT NULL, expires_at DOUBLE NOT NULL);
INSERT INTO weft_locks VALUES('queue bank','',1,0.0);
INSERT INTO weft_locks VALUES('import','worker 1',1,2795402952.0609998701);
CREATE TABLE weft_bodies (id VARCHAR(64) NOT NULL PRIMARY KEY, kept_at BIGINT NOT NULL, body BLOB NOT NULL);
INSERT INTO weft_bodies VALUES('01a2065a-ed50-706e-bdb1-820d2a441809',1795402952,X'7b2274657874223a226c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e67206c6f6e6720227d');
CREATE TABLE weft_events (position INTEGER PRIMARY KEY AUTOINCREMENT, stream VARCHAR(200) NOT NULL, version BIGINT NOT NULL, type VARCHAR(200) NOT NULL, schema_version INT NOT NULL, headers TEXT NOT NULL, body TEXT NOT NULL, recorded_at BIGINT NOT NULL, UNIQUE (stream, version));
INSERT INTO weft_events VALUES(1,'order-7',1,'shop.orderPlaced',1,'{}','{"orderId":"7","total":20}',1795402952064);
INSERT INTO weft_events VALUES(2,'order-7',2,'shop.remind',1,'{}','{"text":"first"}',1795402952064);
CREATE TABLE weft_snapshots (stream VARCHAR(200) NOT NULL PRIMARY KEY, version BIGINT NOT NULL, schema_version INT NOT NULL, state TEXT NOT NULL);
CREATE TABLE weft_unique_values (name VARCHAR(100) NOT NULL, value VARCHAR(200) NOT NULL, owner VARCHAR(200) NOT NULL, PRIMARY KEY (name, value));
CREATE TABLE weft_projections (name VARCHAR(200) NOT NULL PRIMARY KEY, position BIGINT NOT NULL);
INSERT INTO weft_projections VALUES('orders',2);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('weft_consumers',1);
INSERT INTO sqlite_sequence VALUES('weft_claims',2);
INSERT INTO sqlite_sequence VALUES('weft_waiting',2);
INSERT INTO sqlite_sequence VALUES('weft_events',2);
CREATE INDEX weft_inbox_handled_at ON weft_inbox (handled_at);
CREATE INDEX weft_attempts_noted_at ON weft_attempts (noted_at);
CREATE INDEX weft_delayed_due ON weft_delayed (due);
CREATE INDEX weft_waiting_queue ON weft_waiting (queue, order_key, place);
CREATE INDEX weft_sagas_started_at ON weft_sagas (saga, started_at);
CREATE INDEX weft_saga_values_id ON weft_saga_values (saga, id);
