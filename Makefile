# Only Go, git and make are needed; `make lint` builds its tools by itself from tools/go.mod (cached after the first time). `make race`
# needs a C compiler too, and the tests that are skipped without it what `make npm` installs with node's npm.

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS = -s -w -X main.version=$(VERSION)

TESTFLAGS ?=
KILLS ?= 1000
CRASHTIME ?= 60m
FUZZTIME ?= 30s
SWAPTIME ?= 10s
NODETIME ?= 5m
SEEDS ?= 2000
SEED ?= 1
CRASHSEED ?= 0
OPENSTEP ?= 1
SIMTIME ?= 60m
STORE ?=
BENCH ?= ./internal/bench

# go tool builds what tools/go.mod pins and keeps it in the build cache; nothing is installed.
TOOL = $(GO) tool -modfile=tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help build demo npm npm-proof test race race-concurrent proof vet lint fmt fmt-check swap crash on-postgres nodes sim fuzz bench bench-short screenshots sdk-check translate openapi tidy tidy-check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/regie, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/regie ./cmd/regie

demo: ## the whole job without a key: real files, a real kill -9, a resume
	@echo "Building bin/regie; the first time this takes a minute or two."
	@$(MAKE) --no-print-directory build
	@bin/regie demo

# Packages of npm by the folders of their lock files. A frontend of a folder proof-* runs in make proof alone.
NPM = internal/toolkit/mcp/testdata/npm internal/mcpserver/testdata/npm internal/acp/testdata/npm \
	internal/compat/testdata/npm internal/compat/testdata/anthropic internal/compat/testdata/openai \
	internal/app/testdata/npm
NPM_PROOF = internal/compat/testdata/proof-anthropic internal/compat/testdata/proof-openai
npm: ## the programs of npm that tests talk to: SDKs, conformance suites, coding frontends, as lock files pin them
	for dir in $(NPM); do npm ci --prefix $$dir --ignore-scripts --no-audit --no-fund || exit 1; done

npm-proof: ## the frontends that only make proof runs
	for dir in $(NPM_PROOF); do npm ci --prefix $$dir --ignore-scripts --no-audit --no-fund || exit 1; done

# What tests write lies in memory where there is enough of it for files (2 GiB of /dev/shm, from which programs may be started): else a third of
# their time is waiting for the disk. What go builds stays where it is. TESTTMP= has them use TMPDIR.
TESTTMP ?= $(shell test -w /dev/shm && ! grep -q '^[^ ]* /dev/shm [^ ]* [^ ]*noexec' /proc/mounts && test "$$(df -Pk /dev/shm | awk 'NR == 2 { print $$4 }')" -ge 2097152 && echo /dev/shm)
INTEST = $(if $(TESTTMP),-exec 'env -u GOTMPDIR TMPDIR=$(TESTTMP)')

# Tests of processes, terminals and databases wait more than they compute: one package more than there
# are processors runs at once.
ATONCE ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))

test: ## all tests
	$(GO) test -p $(ATONCE) $(INTEST) -timeout 15m $(TESTFLAGS) ./...

# SQLite, as translated from C, is not instrumented: what it works on is memory from mmap, which the detector does not look at (runtime, racecalladdr),
# so that all it adds is most of the time. What calls it, and the libc below it with its locks, is.
RACE = GORACE=atexit_sleep_ms=50 $(GO) test -p $(ATONCE) $(INTEST) -race -gcflags=modernc.org/sqlite/lib=-race=false -timeout 30m
race: ## all tests under the race detector
	$(RACE) $(TESTFLAGS) ./...

# The packages that start goroutines or share memory between them. Of internal/app, whose tests start
# whole servers, the detector sees those that let several clients, rounds or processes meet.
CONCURRENT = . ./client ./internal/access ./internal/acp ./internal/dispatch ./internal/engine ./internal/fault \
	./internal/httpapi ./internal/index/... ./internal/mcpserver ./internal/provider/... \
	./internal/slot ./internal/snapshot ./internal/store/... ./internal/tool ./internal/toolkit/mcp \
	./internal/tui ./internal/workspace ./internal/automation/trigger ./internal/notify
CONCURRENT_APP = AtOnce|Together|Busy|Slots|Switch|Control|Stop|Drain|Killed|Elsewhere|Stream|Presence|Heartbeat|WebSocket|Watch|$\
	AsksOnce|TakeOver|Queue|Hand|Clos|Interrupt|Breaker|Crowded|Meanwhile|AgainstRuns|Beside|Warm|Waits|Steer|Pause|Automations_
# Of the sandbox's and the shell's tests, which start hundreds of processes, those that stop, outlive or
# overtake a command.
CONCURRENT_SANDBOX = TestCommand|TestPoliteEnd|TestEndless|TestTooLate|TestKilled|TestStreams|TestCutShort|TestAllThatIsLeft
race-concurrent: ## the packages with concurrency under the race detector
	$(RACE) $(TESTFLAGS) $(CONCURRENT)
	$(RACE) $(TESTFLAGS) -run '$(CONCURRENT_SANDBOX)' ./internal/sandbox ./internal/toolkit/shell
	$(RACE) $(TESTFLAGS) -run '$(CONCURRENT_APP)' ./internal/app

proof: ## the long suites with fresh seeds, before an issue is resolved; PROOFSEED repeats a run
	bash .ci/proof

vet: ## go vet, without and with the crash tests' fault points
	$(GO) vet ./...
	$(GO) vet -tags faults ./...

lint: fmt-check ## formatting and every linter of .golangci.yml
	$(TOOL) golangci-lint run

fmt: ## format all files
	$(TOOL) gofumpt -w .

fmt-check: ## list files that gofumpt would change, and fail if there are any
	@out=$$($(TOOL) gofumpt -l .) && test -z "$$out" || { printf 'not formatted (make fmt):\n%s\n' "$$out"; exit 1; }

swap: ## swap links under the hands of every tool for files for SWAPTIME: nothing may be read or changed outside
	$(GO) test ./internal/toolkit/files -run 'TestAttacks|TestSwapRace' -count=1 -v -args -race-time=$(SWAPTIME)

crash: ## kill the program KILLS times, also at every fault point, and count the effects; lost writes, migrations (one operation of OPENSTEP), the seeded bugs too
	$(GO) test -tags faults ./internal/crash -skip 'TestNode' -count=1 -timeout $(CRASHTIME) -v -args -seed=$(CRASHSEED) -kills=$(KILLS) -outages=$$(($(KILLS) / 5)) -open-step=$(OPENSTEP)

PGTESTS ?= .
on-postgres: ## the tests PGTESTS of internal/app on the PostgreSQL of REGIE_TEST_POSTGRES, and KILLS deaths of the program on it
	REGIE_TEST_STORE=postgres $(GO) test $(INTEST) ./internal/app -run '$(PGTESTS)' -count=1 -timeout 25m
	$(GO) test -tags faults ./internal/crash -run 'TestCrash$$' -count=1 -timeout $(CRASHTIME) -v -args -seed=$(CRASHSEED) -kills=$(KILLS) -postgres

nodes: ## two engines on one database, then three, each for NODETIME, killed and stopped under load; the bugs that show only there
	$(GO) test -tags faults ./internal/crash -run 'TestNode' -count=1 -timeout $(CRASHTIME) -v -args -seed=$(CRASHSEED) -node-time=$(NODETIME)

# A session's garbage is collected less often than a program's would be: its memory is no part of what is simulated, and that is a fifth of the time.
sim: ## simulate SEEDS sessions from SEED on, or the plan in the file PLAN; the same seeds twice; the seeded bugs too; STORE=postgres: the sessions alone, there
	GOGC=400 GODEBUG=tracebacklabels=1 REGIE_TEST_STORE=$(STORE) $(GO) test -tags faults ./internal/sim $(if $(STORE),-run 'TestSim$$') -count=1 -timeout $(SIMTIME) -v -args $(if $(PLAN),-plan=$(abspath $(PLAN)),-seeds=$(SEEDS) -seed=$(SEED)) $(SIMFLAGS)

# go 1.26 sometimes calls the end of -fuzztime itself a failure ("context deadline exceeded", golang/go#75804, mended in 1.27). What a target finds is
# written down as a failing input, so that alone, without one, is no failure.
# Making an interesting input smaller takes a minute each by default, which is all of the time and more.
# A package's test is built once for all of its targets; FUZZJOBS targets run beside each other, each in one process (its corpus is run in another).
FUZZJOBS ?= $(shell nproc 2>/dev/null || echo 2)
FUZZDIR = bin/fuzz
export FUZZTIME FUZZDIR
fuzz: ## each fuzz target for FUZZTIME, FUZZJOBS of them beside each other
	@rm -rf $(FUZZDIR) && mkdir -p $(FUZZDIR)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		$(GO) test -c -fuzz . -o "$(FUZZDIR)/$$(echo "$$dir" | tr / _).test" "$$dir" || exit 1; \
		sed -n 's|^func \(Fuzz[A-Za-z0-9_]*\)(.*|'"$$dir"' \1|p' $$(ls "$$dir"/*_test.go); \
	done >$(FUZZDIR)/targets
	@test -s $(FUZZDIR)/targets && xargs -P $(FUZZJOBS) -n 2 bash .ci/fuzz <$(FUZZDIR)/targets

bench: ## the figures of docs/benchmarks.md
	$(GO) run $(BENCH)

bench-short: ## the same in a few seconds, to see that it runs; its figures mean little
	$(GO) run $(BENCH) -short

# The pictures are of the browser tests, in English, light, at 1440 pixels.
PICTURES = new-en approval-en answer-en inbox-en runs-en automations-en automation-en automation-edit run-timeline run-call dashboard-en settings-providers widget-en
screenshots: ## take the pictures of docs/img
	@dir=$$(mktemp -d) && REGIE_SCREENS=$$dir $(GO) test ./internal/app -run 'TestBrowser|TestDashboard|TestWebRuns' -count=1 && \
		mkdir -p docs/img && for name in $(PICTURES); do cp $$dir/$$name-light-1440.png docs/img/$$name.png || exit 1; done; rm -r $$dir

sdk-check: ## a mail server that others wrote and our mail; what the vendors' official SDKs make of our requests, and of the streams that we read; a module of its own, minutes to build at first
	$(GO) -C internal/sdkcheck vet ./...
	$(GO) -C internal/sdkcheck test -timeout 10m $(TESTFLAGS) ./...

translate: ## list the sentences without a French translation, and add them empty to the catalogue
	$(GO) test ./internal/i18n -run TestCatalogue -count=1 -update

openapi: ## the OpenAPI document and its page, from the operations and the comments of their types
	$(GO) test ./internal/httpapi -run TestDocument -count=1 -update

tidy: ## go.mod and go.sum, of the tools and of the check against the SDKs too
	$(GO) mod tidy
	$(GO) -C tools mod tidy
	$(GO) -C internal/sdkcheck mod tidy

tidy-check: ## fail where make tidy would change something
	$(GO) mod tidy -diff
	$(GO) -C tools mod tidy -diff
	$(GO) -C internal/sdkcheck mod tidy -diff

clean: ## remove what was built
	rm -rf bin
	find . -name '*.test' -type f -delete -o -name '*.prof' -type f -delete
