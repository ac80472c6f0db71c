SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# One goal after the other: the compiler and the tests use all cores by themselves.
.NOTPARALLEL:

BROKER ?= sqlite
CASES ?= 100000
COMMANDS ?= 100000
MESSAGES ?= 20000
SEED ?= 1
TRANSPORT ?= rabbitmq

# The Rust that scripts/setup installs comes before an older one of the distribution. Each is added once, also where make runs make: build
# scripts look for PHP on the PATH, so Cargo builds the extension again where that has changed. scripts/match-php sees the rest.
CARGO_BIN := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin
ifeq ($(filter $(CARGO_BIN):%,$(PATH)),)
export PATH := $(CARGO_BIN):$(PATH)
endif
ifeq ($(findstring :/usr/local/go/bin:,:$(PATH):),)
export PATH := $(PATH):/usr/local/go/bin
endif

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
EXTENSION := $(TARGET)/release/libweft.so
DEBUG_EXTENSION := $(TARGET)/debug/libweft.so
# The profile that scripts/pgo has trained, if there is one.
PROFILE := $(wildcard $(abspath $(or $(WEFT_VAR),var))/weft.profdata)
# SHORT=1 makes a benchmark show the shape of its result quickly.
SHORT_FLAG := $(if $(filter-out 0,$(SHORT)),--short)
DEMO_TIERS := demo $(if $(filter rabbitmq,$(BROKER)),services)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\n  %s\n' 'BROKER=sqlite|rabbitmq (now $(BROKER)) and COMMANDS=N (now $(COMMANDS)) apply to demo, as does FRESH=1, which gives up a run that was stopped; COMMANDS also to bench-bus.'

.PHONY: setup
setup: ## install what the demo needs and this machine lacks (BROKER=rabbitmq: the servers too)
	@scripts/setup $(DEMO_TIERS)

.PHONY: build
build: ## build the extension with optimisations: target/release/libweft.so
	@scripts/match-php release
	@$(if $(PROFILE),RUSTFLAGS="$${RUSTFLAGS:-} -Cprofile-use=$(PROFILE)") cargo build --locked --release --package weft-ext

.PHONY: pgo
pgo: ## train a profile that `make build` and `make release` use from then on: var/weft.profdata (a quarter of an hour)
	@scripts/setup demo services bench
	@scripts/pgo

.PHONY: install
install: ## put the extension and its ini file beside those of the PHP on the PATH (needs root; DESTDIR=directory)
	@# With sudo the user who has Rust builds.
	@if [[ -n "$${SUDO_USER:-}" && $$EUID == 0 && $$SUDO_USER != root ]]; then sudo -H -u "$$SUDO_USER" $(MAKE) build; else $(MAKE) build; fi
	@strip --strip-unneeded -o '$(TARGET)/weft.so' '$(EXTENSION)'
	@packaging/install '$(TARGET)/weft.so'

.PHONY: uninstall
uninstall: ## take them away again
	@packaging/install --remove

# One system of the list for each version of PHP.
.PHONY: release
release: ## build archives, Debian packages, checksums and SBOM for every version of PHP, on Debian 12: var/release, which is emptied first
	@scripts/setup demo chroots
	@[[ -n '$(PROFILE)' ]] || $(MAKE) pgo
	@rm -rf "$${WEFT_VAR:-var}/release"
	@for system in $$(scripts/chroot --list | awk '!seen[$$3]++ { print $$1 }'); do scripts/release --php="$$system" || exit 1; done
	@cat "$${WEFT_VAR:-var}/release/SHA256SUMS"

.PHONY: release-arm64
release-arm64: ## add archives and Debian packages for 64-bit ARM, built with a cross compiler (ROWS="bookworm trixie")
	@scripts/setup demo arm64
	@for row in $(or $(ROWS),bookworm); do scripts/release --no-sbom --php="$$row.arm64" || exit 1; done

.PHONY: test-install
test-install: ## install what `make release` built in bare chroots, by archive, package and `make install`, and serve a request (ROWS="trixie", needs root)
	@scripts/setup demo chroots
	@scripts/test-install $(ROWS)

.PHONY: image
image: ## build the container image of Dockerfile as an OCI archive without a daemon and try it: var/image (needs root)
	@scripts/setup demo image
	@scripts/image

.PHONY: build-debug
build-debug: ## build the extension the tests use: target/debug/libweft.so
	@scripts/match-php debug
	@cargo build --locked --package weft-ext

.PHONY: demo
demo: check-broker setup build ## run the customers example: 100,000 commands, counted and verified at the end
	@if [[ '$(BROKER)' == rabbitmq ]]; then scripts/services up; . "$${WEFT_VAR:-var}/services/env"; fi; \
	exec php -d extension='$(EXTENSION)' -d opcache.enable_cli=1 examples/customers/app.php --broker='$(BROKER)' --commands='$(COMMANDS)' $(if $(filter-out 0,$(FRESH)),--fresh)

.PHONY: check-broker
check-broker:
	@[[ '$(BROKER)' == sqlite || '$(BROKER)' == rabbitmq ]] || { echo "BROKER is '$(BROKER)': it must be sqlite or rabbitmq" >&2; exit 2; }

.PHONY: services
services: ## start RabbitMQ, PostgreSQL and MariaDB (or MySQL, where only that is installed) as processes of this checkout, on ports of their own
	@scripts/setup demo services
	@scripts/services up
	@scripts/services status

.PHONY: services-down
services-down: ## stop exactly those; their data stays in var/services
	@scripts/services down

.PHONY: test
test: ## run every test there is, Rust and PHP, against real servers
	@scripts/setup demo services test
	@scripts/h2spec || true # its test is skipped where Go is missing
	@scripts/kosoku || true # its test is skipped without a package index
	@scripts/openapi-tools || true # as are its tests
	@scripts/docs-tools || true # as is the one of the site
	@$(MAKE) build-debug
	@WEFT_EXTENSION='$(DEBUG_EXTENSION)' scripts/test

.PHONY: test-matrix
test-matrix: ## run every test on other versions of PHP and the servers, in chroots of Debian's and Ubuntu's releases (ROWS="trixie resolute", needs root)
	@scripts/setup demo chroots
	@scripts/test-matrix $(ROWS)

.PHONY: test-memory
test-memory: ## run the tests that exercise native code under Valgrind (SUITES="sql http": some of them, see scripts/test-memory)
	@scripts/setup demo services test memory
	@$(MAKE) build-debug
	@WEFT_EXTENSION='$(DEBUG_EXTENSION)' scripts/test-memory $(SUITES)

.PHONY: test-quick
test-quick: ## run what needs no server but SQLite and little time: for while you edit
	@scripts/setup demo test
	@$(MAKE) build-debug
	@WEFT_EXTENSION='$(DEBUG_EXTENSION)' scripts/test quick

.PHONY: test-pool-model
test-pool-model: ## explore 1.2 million random schedules of the connection pool
	@cargo test --locked --release --package weft-core --lib -- --ignored pool::

.PHONY: test-server-model
test-server-model: ## explore a million random schedules of the server core
	@cargo test --locked --release --package weft-core --lib -- --ignored server::

.PHONY: test-properties
test-properties: ## feed the readers of MySQL, PostgreSQL and AMQP with millions of malformed inputs (CASES=100000 of each kind), and run all attacks of a hostile broker
	@PROPTEST_CASES='$(CASES)' cargo test --locked --package weft-core --lib -- hostile malformed_input
	@WEFT_HOSTILE=all cargo test --locked --package weft-core --test amqp -- hostile_broker::

.PHONY: fuzz
fuzz: ## feed the decoders of gRPC and Protocol Buffers malformed input for an hour each, or FOR=SECONDS; a failure names its seed
	@WEFT_FUZZ_SECONDS=$(or $(FOR),3600) cargo test --locked --release --package weft-core --lib --test grpc -- \
		protobuf::fuzz:: damage:: no_template_and_no_path

.PHONY: check
check: ## check formatting, lints, warnings of the C, coding style, types of PHP and the direction of dependencies without changing a file
	@scripts/setup demo check
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	scripts/rust-modules check
	scripts/check-headers here
	cargo clippy --locked --manifest-path bench/clients/program/Cargo.toml --target-dir bench/out/clients -- -D warnings
	cargo clippy --locked --manifest-path bench/http/peers/floor/Cargo.toml --target-dir bench/out/http-floor -- -D warnings
	scripts/php-style check
	scripts/mago analyze
	scripts/mago --config mago-tests.toml analyze
	scripts/mago guard
	scripts/dependencies

.PHONY: check-headers
check-headers: ## compile the C of the extension against the headers of every version of PHP there is (ROWS="forky php8.6": some of them)
	@scripts/check-headers $(ROWS)

.PHONY: docs
docs: ## make the site of the documentation, with the reference from the sources: var/site/html
	@scripts/setup demo docs
	@$(MAKE) build-debug
	@php -d extension='$(DEBUG_EXTENSION)' site/build

.PHONY: docs-check
docs-check: docs ## open the site in Chromium as phone, tablet and desk: requests, contrast, width, search; pictures in var/site/screenshots
	@node site/check.mjs

.PHONY: format
format: ## format Rust and PHP
	@scripts/setup demo check
	cargo fmt --all
	scripts/php-style fix

.PHONY: bench-relay
bench-relay: ## measure the relay on an outbox with 100,000 messages left behind
	@scripts/setup demo services
	@$(MAKE) build
	@scripts/services up
	@. "$${WEFT_VAR:-var}/services/env"; php -d extension='$(EXTENSION)' -d opcache.enable_cli=1 bench/relay/run

.PHONY: soak-bus
soak-bus: ## run inbox, relay, delays, order, keys, fairness and memory of the bus for long, a quarter of an hour or more in all
	@scripts/setup demo services
	@$(MAKE) build
	@scripts/services up
	@. "$${WEFT_VAR:-var}/services/env"; code=0; for soak in inbox relay 'delays 100000 36 database' 'delays 100000 36 queues' 'order 1000 100 3' 'keys 1 200000' fairness memory; do \
		echo "--- $$soak"; php -d extension='$(EXTENSION)' -d opcache.enable_cli=1 bench/soak/$$soak || code=1; done; exit $$code

.PHONY: chaos
chaos: ## break workers, servers and connections while the bus works, and count (MESSAGES=20000 SEED=1 TRANSPORT=rabbitmq)
	@scripts/setup demo services
	@$(MAKE) build
	@WEFT_EXTENSION='$(EXTENSION)' php -d extension='$(EXTENSION)' bench/chaos/run --messages=$(MESSAGES) --seed=$(SEED) --transport=$(TRANSPORT)

# It starts the servers it needs, and stops those it started.
SUITE := COMMANDS='$(COMMANDS)' bench/run $(SHORT_FLAG) --extension='$(EXTENSION)'

.PHONY: bench
bench: ## run every benchmark and make the page of their results (about 40 minutes, SHORT=1: about six; COMPARE=DIRECTORY of earlier results)
	@scripts/setup demo services bench rinha
	@$(MAKE) build
	@$(SUITE) $(if $(COMPARE),--compare='$(COMPARE)')

.PHONY: bench-bus
bench-bus: ## measure Weft, Go, pure PHP, symfony/messenger, and php-service-bus where SERVICE_BUS names it, side by side (SHORT=1: a minute)
	@scripts/setup demo services bench
	@$(MAKE) build
	@$(SUITE) --only=bus

.PHONY: bench-bus-matrix
bench-bus-matrix: ## the same with transient and persistent messages, without and with publisher confirms
	@scripts/setup demo services bench
	@$(MAKE) build
	@$(SUITE) --only=bus --matrix

.PHONY: bench-bus-noop
bench-bus-noop: ## measure bare publishing and consuming beside Go, ext-amqp and RabbitMQ's perf-test (SHORT=1: one round)
	@scripts/setup demo services bench
	@$(MAKE) build
	@bench/noop/run $(SHORT_FLAG) --extension='$(EXTENSION)'

.PHONY: bench-clients
bench-clients: ## measure the native AMQP and PostgreSQL clients beside lapin and tokio-postgres, without PHP (SHORT=1: one minute)
	@scripts/setup demo services bench
	@bench/clients/run $(SHORT_FLAG)

.PHONY: bench-hooks
bench-hooks: ## measure unmodified PDO, curl, Redis, … with hooks beside blocking PHP, PHP-FPM, and Swoole where SWOOLE_EXTENSION names it (SHORT=1)
	@scripts/setup demo services test bench
	@$(MAKE) build
	@scripts/services up
	@. "$${WEFT_VAR:-var}/services/env"; bench/hooks/run $(SHORT_FLAG) --extension='$(EXTENSION)'

.PHONY: state
state: ## count the requests of 64 users that see the state of another, in Symfony and in Laravel: 100,000 (SHORT=1: 5,000)
	@scripts/setup demo services test
	@$(MAKE) build
	@scripts/services up
	@. "$${WEFT_VAR:-var}/services/env"; bench/state/run $(SHORT_FLAG) --extension='$(EXTENSION)'

.PHONY: bench-frameworks
bench-frameworks: ## measure Symfony and Laravel on Weft and PHP-FPM, and where SWOOLE_EXTENSION, FRANKENPHP and ROADRUNNER name them on these: ten to fifteen minutes (SHORT=1: two)
	@scripts/setup demo services test bench
	@$(MAKE) build
	@scripts/services up
	@. "$${WEFT_VAR:-var}/services/env"; bench/frameworks/run $(SHORT_FLAG) --extension='$(EXTENSION)'

.PHONY: bench-http
bench-http: ## measure Weft, Go, Node, PHP-FPM, php -S, and where SWOOLE_EXTENSION, FRANKENPHP and ROADRUNNER name them these, as HTTP servers (SHORT=1: four minutes)
	@scripts/setup demo services bench
	@$(MAKE) build
	@$(SUITE) --only=http

.PHONY: bench-guard
bench-guard: ## count instructions, allocations and system calls of a request, a query and a message; fails when one rose by 3 % (four minutes; LIMITS=FILE: others than the committed, WRITE=1 makes them)
	@scripts/setup demo services memory
	@$(MAKE) build
	@scripts/services up
	@. "$${WEFT_VAR:-var}/services/env"; bench/guard/run --extension='$(EXTENSION)' $(if $(LIMITS),--limits='$(LIMITS)') $(if $(WRITE),--write)

.PHONY: bench-grpc
bench-grpc: ## measure Weft, grpc-go, tonic and grpc-js as gRPC servers (SHORT=1: two minutes)
	@scripts/setup demo bench
	@$(MAKE) build
	@$(SUITE) --only=grpc

.PHONY: bench-grpc-bounds
bench-grpc-bounds: ## measure the limits of one gRPC server: tail, a million messages, distance, idle connections, an hour of load (SOAK=SECONDS)
	@scripts/setup demo bench
	@$(MAKE) build
	@bench/grpc/bounds --soak=$(or $(SOAK),3600)

.PHONY: bench-pool
bench-pool: ## measure the gain from the pool: five published loads against MariaDB, also for Swoole where SWOOLE_EXTENSION names it (SHORT=1: half a minute)
	@scripts/setup demo services bench
	@$(MAKE) build
	@$(SUITE) --only=pool

.PHONY: rinha bench-rinha
bench-rinha: rinha
rinha: ## run the Rinha de Backend: Gatling against examples/rinha within 1.5 CPU and 3.0 GB, inserting in two ways (SHORT=1: 23 seconds of load each)
	@scripts/setup demo rinha
	@$(MAKE) build
	@$(SUITE) --only=rinha

.PHONY: bench-scale
bench-scale: ## measure curves: concurrency, connections, workers, waiting tasks, backlog (SHORT=1: two minutes)
	@scripts/setup demo services bench
	@$(MAKE) build
	@bench/scale/run $(SHORT_FLAG) --extension='$(EXTENSION)'

.PHONY: bench-report
bench-report: ## make the page of the results in bench/out, or of the published ones: FROM=published
	@scripts/setup demo bench
	@bench/report/build $(if $(filter published,$(FROM)),,--from=bench/out)

.PHONY: bench-render
bench-render: ## write the pages that show published results from bench/*/results.json
	@bench/render

.PHONY: soak-reload
soak-reload: ## reload workers 100 times under load and count the requests that fail: none must
	@scripts/setup demo bench
	@$(MAKE) build
	@bench/reload/run --extension='$(EXTENSION)' --reloads=$(or $(RELOADS),100)

.PHONY: bench-protobuf
bench-protobuf: ## measure what encoding and decoding a message costs, here and with google/protobuf for PHP
	@scripts/setup demo test
	@$(MAKE) build
	@bench/protobuf/run '$(EXTENSION)'

.PHONY: clean
clean: ## stop the services and remove what was built, var included
	scripts/services purge
	cargo clean
	for lane in "$${WEFT_VAR:-var}"/lanes/* "$${WEFT_VAR:-var}"/chaos-*/chaos; do [[ ! -d $$lane/services ]] || WEFT_VAR=$$lane scripts/services purge; done
	rm -rf "$${WEFT_VAR:-var}" bench/out .phpunit.result.cache
