# README and CONTRIBUTING say what the targets are for. Each that runs a test prints what it runs.

export CGO_ENABLED ?= 0
# As the programs in the images are built, so that what they share is compiled once. The tag keeps gRPC from linking
# html/template, for which the linker keeps every exported method: lockcheck would have 50 MB instead of 37 MB.
TAGS := grpcnotrace
export GOFLAGS ?= -trimpath -tags=$(TAGS)

.PHONY: build workers demo cold check lint test test-all tidy images screenshots release clean
.PHONY: soak layouts mutants hunts hunt-mutants crosscheck coverage fuzz bench findings comparison claims sweeps load guide guide-runs docs
.PHONY: examples example-findings example-comparison

# Whatever GOFLAGS says: --version is to tell the commit.
BUILD := go build -buildvcs=auto -tags $(TAGS) -ldflags='-s -w'
build:
	$(BUILD) -o lockcheck ./cmd/lockcheck

# The programs of workers whose libraries lockcheck does not have. Next to its source code lockcheck
# builds each of them on first use as well.
WORKERS := $(notdir $(wildcard workers/*))
MODULES := $(patsubst %/go.mod,%,$(wildcard workers/*/go.mod))
workers:
	for w in $(WORKERS); do (cd workers/$$w && $(BUILD) -tags $$w -o ../../lockcheck-$$w .) || exit 1; done

# The first violation: workers are stopped beyond their lease, and write. That takes none of the
# client libraries, which are more than half of what there is to compile.
demo:
	if test -x lockcheck && ! go version -m lockcheck | grep -q 'tags=embedded'; then $(MAKE) build; else $(BUILD) -tags embedded -o lockcheck ./cmd/lockcheck; fi
	./lockcheck test --expect violation --time-limit 10s

# What a target costs on a machine that has nothing yet: in a fresh clone, with empty caches of
# modules and builds. Of the tests also without images: lockcheck's are removed first.
COLD ?= demo
cold:
	case $(COLD) in test*) $(MAKE) build; ./lockcheck clean --images ;; esac
	set -e; new=$$(mktemp -d); trap 'chmod -R u+w $$new; rm -rf $$new' EXIT; git clone -q . $$new/lockcheck; cd $$new/lockcheck; \
	export GOMODCACHE=$$new/modules GOCACHE=$$new/build; \
	bash -c 'TIMEFORMAT="$(COLD) from nothing: %R s, %U s of processor time by programs, %S s by the kernel"; time $(MAKE) $(COLD)'; ls -l lockcheck

# What every commit is tried with: formatting, vet, staticcheck, and all tests that start
# no servers, which are those that -short leaves in.
check: lint
	go test -short -vet=off -timeout 5m ./...
	go test -short -vet=off -tags 'mutants embedded' ./tools/mutants

# Locks, faults and whole runs, on embedded servers and, where Docker is there, on Redis, etcd and
# PostgreSQL. What needs no Docker runs while the images are made. Tests with servers mostly wait for
# leases and faults, so more of them run at a time than there are processors; the package that takes
# longest begins first.
GO_TEST := go test -vet=off -timeout 40m
SERVERS := ./internal/runs ./clusters ./nemesis ./cmd/lockcheck ./internal/suites/hunt ./examples/go-lock ./internal/suites/matrix ./internal/suites/repros ./clients ./clusters/engine ./clusters/images ./internal/cleanup ./internal/suites/claims ./internal/suites/sweep ./internal/suites/advise ./internal/suites/profile ./internal/application/ask
REST := ./clients ./clusters ./clusters/images ./nemesis ./internal/application/ask ./internal/runs ./internal/swarm ./internal/suites/advise ./internal/suites/hunt ./internal/suites/repros ./tools/release
test-pure test-race test-servers test-rest: export LOCKCHECK_TESTED = $(CURDIR)/lockcheck
test-servers: export LOCKCHECK = $(CURDIR)/lockcheck
stage = @bash -c 'TIMEFORMAT="== $(1): %R s, %U + %S s of processor time"; time $(MAKE) $(1)'
test:
	$(call stage,build)
	$(call stage,-j 3 test-images test-race test-pure)
	$(call stage,test-servers)
	$(call stage,test-mutants)

# Everything: also the tests on all other servers, of releases, of the swarm, and of the programs of workers.
test-all: test
	$(call stage,test-rest)

.PHONY: test-images test-pure test-race test-servers test-rest
test-images: build
	./lockcheck images redis etcd-3.6.16 postgres || true # each test that needs one makes it, and says so if it cannot
test-pure: lint
	$(GO_TEST) $$(go list ./... | grep -vxF "$$(go list $(SERVERS) $(REST))")
# The race detector needs a C compiler. Without client libraries there is half as much to compile. In
# test-rest it watches all packages; here those in which much is done at a time, and a whole run.
RACED := ./clients/conformance ./clients/protocol ./clients/unixrpc ./clusters/agent ./nemesis ./workloads ./internal/runs ./internal/suites ./internal/swarm ./internal/web
RACE := CGO_ENABLED=1 $(GO_TEST) -race -short -tags embedded
test-race:
	if command -v gcc >/dev/null; then $(RACE) $(RACED) && CGO_ENABLED=1 go build -race -tags embedded -o lockcheck-race ./cmd/lockcheck && ./lockcheck-race test --expect violation --time-limit 10s; fi
test-servers: build
	$(GO_TEST) -p 2 -parallel $$((2 * $$(nproc))) $(SERVERS)
# Tests of client libraries that only programs of workers have.
LINKED := kubernetes,s3
test-rest: export LOCKCHECK_REST = 1
test-rest: build workers
	./lockcheck images || true
	go vet -tags $(LINKED),$(TAGS) ./clients ./clusters ./workers/...
	if command -v gcc >/dev/null; then $(RACE) $$(go list ./... | grep -vxE 'lockcheck|lockcheck/(clients|clusters|cmd/.*|tools/.*)' | grep -vxF "$$(go list $(RACED))"); fi
	$(GO_TEST) -tags $(LINKED),$(TAGS) -p 2 -parallel $$((2 * $$(nproc))) $(REST)

lint:
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	for m in $(MODULES); do (cd $$m && go vet .) || { echo "$$m: try make tidy"; exit 1; }; done

# The modules of workers with other library versions need the same modules as lockcheck.
tidy:
	go mod tidy
	for m in $(MODULES); do (cd $$m && go mod tidy) || exit 1; done

# All images now, instead of on first use.
images: build
	./lockcheck images

# The pictures of the README, of a run that is made for it and of the stored comparison if there is one: needs
# Docker, and Chromium. As root: CHROMIUM='chromium --no-sandbox'.
CHROMIUM ?= chromium
screenshots: build
	rm -rf store/screenshots
	./lockcheck repro redlock-clock-jump --store store/screenshots
	$(CHROMIUM) --headless --hide-scrollbars --window-size=1180,900 --screenshot=docs/redlock-clock-jump.png file://$(CURDIR)/store/screenshots/latest/report.html
	if test -f $(COMPARISON)/comparison.html; then $(CHROMIUM) --headless --hide-scrollbars --window-size=1400,1180 --screenshot=docs/comparison.png file://$(CURDIR)/$(COMPARISON)/comparison.html; fi

# What is published, in dist/: for each architecture an archive of lockcheck and the programs of its
# workers, the list of their modules and a container image; the pages that commands make; and checksums. The same commit and Go give the same bytes. The version is that of the
# tag, which Go takes from the checkout; not from a worktree.
RELEASED := amd64 arm64
release:
	rm -rf dist
	$(MAKE) docs
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C dist -c docs | gzip -9n > dist/lockcheck-docs.tar.gz
	rm -rf dist/docs
	set -e; for arch in $(RELEASED); do export CGO_ENABLED=0 GOFLAGS='-trimpath -tags=$(TAGS)' GOOS=linux GOARCH=$$arch; \
	$(BUILD) -o dist/linux-$$arch/lockcheck ./cmd/lockcheck; \
	for w in $(WORKERS); do (cd workers/$$w && $(BUILD) -tags $$w -o ../../dist/linux-$$arch/lockcheck-$$w .); done; done
	go run ./tools/release -folder dist

# Where series of runs are kept.
FINDINGS := store/findings
EXAMPLE_FINDINGS := store/findings-examples
CLAIMS := store/claims
COMPARISON := store/comparison
EXAMPLE_COMPARISON := store/comparison-examples
SWEEPS := store/sweeps
LOAD := store/load

# The docs with what commands print: the tables of the program, the guide, and of stored runs
# those that are there (findings, claims, comparison, sweeps, load). Nothing of it is committed.
DOCS := dist/docs
MADE := $(DOCS)/made
PAGES := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs examples go.mod checker/testdata/corpus/README.md clusters/images/official/digests.txt
LISTED := locks clusters faults attacks workloads guards properties causes suite
STORED := $(COMPARISON)/comparison.md $(COMPARISON)/comparison.html $(EXAMPLE_COMPARISON)/comparison.md $(SWEEPS)/redis/sweep.md $(SWEEPS)/etcd/sweep.md $(LOAD)/profile.md
docs: build
	rm -rf $(DOCS)
	mkdir -p $(MADE)
	git ls-files $(PAGES) | xargs cp --parents -t $(DOCS)
	for list in $(LISTED); do ./lockcheck list $$list > $(MADE)/$$list.txt || exit 1; done
	./lockcheck list causes --long > $(MADE)/causes.txt
	./lockcheck guide > $(MADE)/guide.md
	./lockcheck guide --html $(MADE)/guide.html
	for page in $(STORED); do if test -f $$page; then cp --parents $$page $(MADE) || exit 1; fi; done
	if test -d $(FINDINGS); then ./lockcheck repro table --store $(FINDINGS) > $(MADE)/findings.md; fi
	if test -d $(EXAMPLE_FINDINGS); then ./lockcheck repro table examples --store $(EXAMPLE_FINDINGS) > $(MADE)/findings-examples.md; fi
	if test -d $(CLAIMS); then ./lockcheck repro claims table --store $(CLAIMS) --links "" > $(MADE)/claims.md; fi

# Every lock with and without pauses, every reproduction and its control, each TIMES times:
# hours. docs/findings.md is held against what is printed, by hand.
TIMES ?= 1
findings: build workers
	./lockcheck repro all --times $(TIMES) --store $(FINDINGS)
	./lockcheck repro table --store $(FINDINGS)

# All locks under all attacks, twenty trials a cell: hours.
# A comparison goes on where it was stopped, and moves one that is complete out of its way: its
# figures would pass for new ones. That locks are violated is what it is to show.
COMPLETE := test -f $(COMPARISON)/comparison.json && ! grep -q '"missing":' $(COMPARISON)/comparison.json
comparison: build workers
	if $(COMPLETE); then mv $(COMPARISON) $(COMPARISON)-$$(date -u +%Y%m%dT%H%M%S.%3NZ); fi
	if test -d $(COMPARISON); then ./lockcheck compare --resume $(COMPARISON); else ./lockcheck compare --out $(COMPARISON); fi || test $$? -le 2
	$(COMPLETE) || { echo "runs are missing, so it is not published: make comparison goes on with them"; exit 1; }

# Where redis and etcd keep workers apart, over leases and pauses: a quarter of an hour each,
# with nothing else on the machine. Each goes on where it was stopped.
SWEEP_BUDGET ?= 15m
sweeps: build
	$(MAKE) sweep-redis SWEPT="--ttl 500ms..30s --pause 100ms..30s --section 200ms"
	$(MAKE) sweep-etcd SWEPT="--ttl 500ms..30s --pause 500ms..30s --section 200ms"

sweep-%:
	if test -d $(SWEEPS)/$*; then ./lockcheck compare --resume $(SWEEPS)/$* --budget $(SWEEP_BUDGET); \
	else ./lockcheck compare --lock $* $(SWEPT) --budget $(SWEEP_BUDGET) --out $(SWEEPS)/$*; fi

# What locks cost by the number of their workers, without and with others who want the same
# one: about 20 minutes, with nothing else on the machine.
LOAD_LOCKS ?= redis,redlock,etcd,zookeeper,consul,postgres-session
load: build
	rm -rf $(LOAD)
	./lockcheck compare --locks $(LOAD_LOCKS) --load 1..64 --out $(LOAD) || test $$? -le 2

# Common claims, held against runs: about half an hour on two processors, with
# nothing else on the machine, for latencies are measured too. Runs that were not as
# expected are named in the table.
claims: build
	./lockcheck repro claims run --store $(CLAIMS) || test $$? -eq 1
	./lockcheck repro claims table --store $(CLAIMS) --links ""

# What the stored runs of GUIDE_RUNS have shown is added to the evidence that is part of
# lockcheck, of which the guide is made. A run that is there stays.
GUIDE_RUNS ?= $(wildcard store)
EVIDENCE := internal/suites/guide/evidence.jsonl
guide: build
	if test -n "$(GUIDE_RUNS)"; then ./lockcheck guide collect --into $(EVIDENCE) $(GUIDE_RUNS); fi
	$(MAKE) build
	./lockcheck guide

# Runs that only the guide is made of, with sections that outlast leases: three quarters of an
# hour, then the guide. Each comparison goes on where it was stopped.
SECTIONS := store/guide
guide-runs: build
	for f in internal/suites/guide/runs/*.yaml; do out=$(SECTIONS)/$$(basename $$f .yaml); \
	if test -d $$out; then ./lockcheck compare --resume $$out; else ./lockcheck compare -f $$f --out $$out; fi || test $$? -le 2 || exit 1; done
	$(MAKE) guide GUIDE_RUNS=$(SECTIONS)

# lockcheck is killed at 200 random moments of its runs, ten of which are part of
# the tests: nothing may be left.
SOAK ?= 200
soak:
	LOCKCHECK_SOAK=$(SOAK) go test -timeout 4h -run TestKilledAnywhere -v ./internal/runs

# Servers start from images that are laid out as the official ones, by way of a registry.
layouts:
	LOCKCHECK_LAYOUTS=1 LOCKCHECK_REST=1 go test -timeout 1h -run TestLayouts -v ./clusters

# Every lock of examples/ once, without faults: they must be valid. Each is tried, whatever
# becomes of the others.
EXAMPLES = $(shell grep -l '^client:' examples/*/*.yaml)
examples: build go-lock
	@not=; for lock in $(EXAMPLES); do echo "== $$lock"; \
	./lockcheck test --lock $$lock --nemesis none --expect valid || not="$$not $$lock"; done; \
	test -z "$$not" || { echo "not valid:$$not"; exit 1; }

.PHONY: go-lock example-applications
go-lock:
	go build -o examples/go-lock/ ./examples/go-lock

# The programs of applications. That of golang-migrate is fetched, as the first line of its Dockerfile says.
example-applications:
	CGO_ENABLED=0 go build -o examples/applications/leader/ ./examples/applications/leader
	cd examples/applications/migrate && eval "$$(sed -n '1s/^# .*: //p' Dockerfile)"

# The findings of the examples and their controls, TIMES times.
example-findings: build example-applications
	./lockcheck repro all examples --times $(TIMES) --store $(EXAMPLE_FINDINGS) || test $$? -eq 1
	./lockcheck repro table examples --store $(EXAMPLE_FINDINGS)

# The locks of the examples under the usual faults.
example-comparison: build go-lock
	if test -d $(EXAMPLE_COMPARISON); then ./lockcheck compare --resume $(EXAMPLE_COMPARISON); else ./lockcheck compare -f examples/matrix.yaml --out $(EXAMPLE_COMPARISON); fi || test $$? -le 2
	! grep -q '"missing":' $(EXAMPLE_COMPARISON)/comparison.json

# Lockcheck itself: wrong locks must be caught, and right ones never accused; all
# checkers must agree with each other and with a search on random histories; whatever
# a file holds, nothing may panic; and how fast all that is. Last results: docs/trust.md.
MUTANT_SEEDS ?= 20
mutants: lockcheck-mutants
	go run -tags mutants ./tools/mutants -lockcheck ./lockcheck-mutants -seeds $(MUTANT_SEEDS)

# Mutants are in no binary that users run.
.PHONY: lockcheck-mutants test-mutants
lockcheck-mutants:
	$(BUILD) -tags 'mutants embedded' -o $@ ./cmd/lockcheck
test-mutants:
	go vet -tags 'mutants embedded' ./tools/mutants
	$(GO_TEST) -tags 'mutants embedded' ./tools/mutants

# From the name of each lock that is known to fail alone: up to an hour each, HUNT_SEEDS times, and once
# with all trials drawn blindly. A hunt that is in its folder is not made again. The table is in docs/hunt.md.
HUNT_SEEDS ?= 5
HUNTED := redis-unsafe-release postgres-pgbouncer redlock redsync-4.12.0 redis-failover examples/kazoo/lock.yaml consul k8s-lease etcd-v3lock@3.4.3
hunts: build workers
	set -e; for seed in blind $$(seq $(HUNT_SEEDS)); do for lock in $(HUNTED); do \
	out=store/hunts/$$(echo $$lock | tr / -)-$$seed; version=$${lock#*@}; test $$version != $$lock || version=; \
	case $$seed in blind) how='--blind 1';; *) how="--seed $$seed";; esac; \
	test -d $$out || ./lockcheck hunt --lock $${lock%@*} $${version:+--version $$version} $$how --budget 1h --out $$out || test $$? -le 2; \
	done; done

# From the name of each mutant alone: guided against blind trials. The last result is in docs/hunt.md.
HUNT_TRIALS ?= 48
hunt-mutants: lockcheck-mutants
	go run -tags mutants ./tools/mutants -lockcheck ./lockcheck-mutants -hunt $(HUNT_TRIALS)

CROSSCHECK ?= 20
crosscheck:
	go test ./checker -timeout 2h -v -run 'BruteForce|Simulated|Forged|Against|Overwriters' -more $(CROSSCHECK)

# How often intervals hold the truth, and how often runs that are alike are said to differ.
# Real runs that are in the folder are not made again.
COVERAGE_RUNS ?= 120
COVERAGE_TRIALS ?= 1000
coverage: build
	go run ./tools/coverage -lockcheck ./lockcheck -runs $(COVERAGE_RUNS) -trials $(COVERAGE_TRIALS)

FUZZ_TIME ?= 1m
fuzz:
	go test ./history -run '^$$' -fuzz FuzzRead -fuzztime $(FUZZ_TIME)
	go test ./history -run '^$$' -fuzz FuzzDecode -fuzztime $(FUZZ_TIME)
	go test ./history/jepsen -run '^$$' -fuzz FuzzRead -fuzztime $(FUZZ_TIME)
	go test ./nemesis -run '^$$' -fuzz FuzzReadSchedule -fuzztime $(FUZZ_TIME)

BENCH_TIME ?= 3x
bench: build
	LOCKCHECK_TESTED=$(CURDIR)/lockcheck go test ./tools/bench -run '^$$' -bench Judge -benchtime $(BENCH_TIME) -timeout 2h
	LOCKCHECK_TESTED=$(CURDIR)/lockcheck go test ./tools/bench -run '^$$' -bench Hold -benchtime 5000x

# What killed runs have left, and the binaries. Stored runs stay.
clean:
	if test -x lockcheck; then ./lockcheck clean; fi
	rm -rf dist
	rm -f lockcheck lockcheck-race lockcheck-mutants $(addprefix lockcheck-,$(WORKERS))
