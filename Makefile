# Targets: build library-versions check test soak layouts mutants hunts hunt-mutants crosscheck coverage fuzz bench findings comparison claims sweeps load guide guide-runs docs
# examples example-findings example-comparison lint tidy images demo screenshots release clean.

export CGO_ENABLED ?= 0
# As the programs in the images are built, so that what they share is compiled once.
export GOFLAGS ?= -trimpath

# The race detector needs a C compiler.
RACE := $(if $(shell command -v gcc 2>/dev/null),-race,)

.PHONY: build library-versions check test soak layouts mutants hunts hunt-mutants crosscheck coverage fuzz bench findings comparison claims sweeps load guide guide-runs docs examples example-findings example-comparison lint tidy images demo screenshots release clean

# Whatever GOFLAGS says: --version is to tell the commit.
build:
	go build -buildvcs=auto -o lockcheck ./cmd/lockcheck

# Workers with other versions of libraries, for the locks that are named after
# them. Each is a module of its own.
LIBRARY_VERSIONS := $(notdir $(wildcard library-versions/*))
library-versions:
	for v in $(LIBRARY_VERSIONS); do (cd library-versions/$$v && go build -o ../../lockcheck-$$v .) || exit 1; done

# What every commit is tried with: formatting, vet, staticcheck, and all tests that start
# no servers, which are those that -short leaves in.
check: lint
	go test -short -vet=off -timeout 5m ./...

# Everything, on real servers where Docker is there. What needs no Docker first, while
# the images are made; then servers, then faults: next to each other, servers were too busy
# to answer in time. Whole runs last. Most of all that is waiting, so more of it is done at a
# time than there are processors. All packages are vetted once, by
# lint, and test the same binary.
GO_TEST = CGO_ENABLED=$(if $(RACE),1,0) LOCKCHECK_TESTED=$(CURDIR)/lockcheck go test $(RACE) -vet=off -timeout 40m -p 1
SERVERS := ./clients ./clusters
FAULTS := ./nemesis ./clusters/engine ./clusters/images ./clusters/vdso ./cmd/lockcheck
RUNS := ./examples/go-lock ./internal/cleanup ./internal/runs ./internal/swarm ./internal/suites/repros ./internal/suites/matrix ./internal/suites/claims ./internal/suites/sweep ./internal/suites/hunt ./internal/suites/advise
WITH_SERVERS := $(SERVERS) $(FAULTS) $(RUNS) ./clients/conformance ./tools/release
test: build
	$(MAKE) -j 2 tested-images apart
	$(MAKE) tested-servers
	$(MAKE) tested-faults
	$(GO_TEST) -parallel $$((2 * $$(nproc))) ./clients/conformance # in which a client that answers late has failed
	LOCKCHECK=$(CURDIR)/lockcheck $(GO_TEST) -p 2 -parallel $$(($$(nproc) + 1)) $(RUNS)

.PHONY: apart tested-images tested-servers tested-faults
# The checkers are pure and their histories many: those are tried without the race
# detector, and a tenth of them with it. The tests of the repository read files, and no more.
apart: lint
	go test . ./checker
	$(GO_TEST) -p $$(nproc) -short $$(go list ./... | grep -vxE '$(subst $() $(),|,$(patsubst ./%,lockcheck/%,$(WITH_SERVERS)))|lockcheck')
	$(GO_TEST) ./tools/release # mostly compiling, which would delay the faults of runs
	CGO_ENABLED=$(if $(RACE),1,0) go build $(RACE) ./... # compiled now, so that it need not be done later
tested-servers:
	$(GO_TEST) -parallel $$((2 * $$(nproc))) $(SERVERS)
# One package at a time: those of the commands look for whatever a run has left.
tested-faults:
	$(GO_TEST) $(FAULTS)

# The images that tests use, as far as they can be made here: each test that needs one
# makes it on first use, and says so if it cannot.
TESTED_IMAGES := redis valkey postgres mariadb galera zookeeper memcached consul-1.20.1 etcd-3.6.16 etcd-3.4.3 nats-2.15.2 kube-apiserver-1.37.2
tested-images: build
	./lockcheck images $(TESTED_IMAGES) || true

lint:
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	for v in $(LIBRARY_VERSIONS); do (cd library-versions/$$v && go vet .) || { echo "library-versions/$$v: try make tidy"; exit 1; }; done

# The modules of the workers with other library versions need the same modules as lockcheck.
tidy:
	go mod tidy
	for v in $(LIBRARY_VERSIONS); do (cd library-versions/$$v && go mod tidy) || exit 1; done

# All images now, instead of on first use.
images: build
	./lockcheck images

# The first violation: workers are stopped beyond their lease, and write.
demo: build
	./lockcheck test --expect violation

# The pictures of the docs, of a run that is made for them and of the guide: needs Docker, and
# Chromium. As root: CHROMIUM='chromium --no-sandbox'.
CHROMIUM ?= chromium
screenshots: build
	rm -rf store/screenshots
	./lockcheck repro redlock-clock-jump --store store/screenshots
	$(CHROMIUM) --headless --hide-scrollbars --window-size=1180,900 --screenshot=docs/redlock-clock-jump.png file://$(CURDIR)/store/screenshots/latest/report.html
	$(MAKE) screenshot-guide

# In a frame, for Chromium makes an empty picture of a page that it has scrolled itself.
.PHONY: screenshot-guide
screenshot-guide: build
	mkdir -p store/screenshots
	./lockcheck guide --html store/screenshots/guide.html
	echo '<body style="margin: 0"><iframe src="guide.html#guard-none" style="width: 1400px; height: 1200px; border: 0"></iframe>' > store/screenshots/frame.html
	$(CHROMIUM) --headless --hide-scrollbars --window-size=1400,1200 --screenshot=docs/guide.png file://$(CURDIR)/store/screenshots/frame.html

# What is published, in dist/: static binaries, for each the list of its modules and a container
# image, and checksums. The same commit and Go give the same bytes. The version is that of the
# tag, which Go takes from the checkout; not from a worktree.
RELEASED := amd64 arm64
release:
	rm -rf dist
	for arch in $(RELEASED); do CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -buildvcs=auto -ldflags='-s -w' -o dist/lockcheck-linux-$$arch ./cmd/lockcheck || exit 1; done
	go run ./tools/release -folder dist

# Every lock with and without pauses, every reproduction and its control, each
# TIMES times: hours. The table in docs/findings.md is made from the stored runs.
TIMES ?= 1
findings: build library-versions
	./lockcheck findings run --times $(TIMES)
	./lockcheck findings table

# The pages of docs/reference, from the tables of the program. A test fails while one of
# them is not current.
docs: build
	./lockcheck reference docs/reference

# All locks under the usual faults, three runs a cell of those with one server: docs/comparison.md is
# the last one. Three runs at a time for each processor make it an hour; latencies then say little.
# A comparison goes on where it was stopped, and moves one that is complete out of its way: its
# figures would pass for new ones. That locks are violated is what it is to show.
COMPARISON := store/comparison
COMPLETE := test -f $(COMPARISON)/comparison.json && ! grep -q '"missing":' $(COMPARISON)/comparison.json
comparison: AT_ONCE = $$((3 * $$(nproc)))
comparison: build library-versions
	if $(COMPLETE); then mv $(COMPARISON) $(COMPARISON)-$$(date -u +%Y%m%dT%H%M%S.%3NZ); fi
	if test -d $(COMPARISON); then ./lockcheck compare --resume $(COMPARISON) --parallel $(AT_ONCE); else ./lockcheck compare --out $(COMPARISON) --seeds 3 --cluster-seeds 1 --parallel $(AT_ONCE); fi || test $$? -le 2
	$(COMPLETE) || { echo "runs are missing, so nothing is published: make comparison goes on with them"; exit 1; }
	cp $(COMPARISON)/comparison.md docs/comparison.md

# Where redis and etcd keep workers apart, over leases and pauses: a quarter of an hour each,
# with nothing else on the machine. Each goes on where it was stopped.
SWEEPS := store/sweeps
SWEEP_BUDGET ?= 15m
sweeps: build
	$(MAKE) sweep-redis SWEPT="--ttl 500ms..30s --pause 100ms..30s --section 200ms"
	$(MAKE) sweep-etcd SWEPT="--ttl 500ms..30s --pause 500ms..30s --section 200ms"

sweep-%:
	if test -d $(SWEEPS)/$*; then ./lockcheck sweep --resume $(SWEEPS)/$* --budget $(SWEEP_BUDGET); \
	else ./lockcheck sweep --lock $* $(SWEPT) --budget $(SWEEP_BUDGET) --out $(SWEEPS)/$*; fi
	mkdir -p docs/sweeps/$*
	cp $(SWEEPS)/$*/sweep.md $(SWEEPS)/$*/sweep.svg docs/sweeps/$*/

# What locks cost by the number of their workers, without and with others who want the same
# one: about 20 minutes, with nothing else on the machine.
LOAD := store/load
LOAD_LOCKS ?= redis,redlock,etcd,zookeeper,consul,postgres-session
load: build
	rm -rf $(LOAD)
	./lockcheck profile --locks $(LOAD_LOCKS) --load 1..64 --out $(LOAD) || test $$? -le 2
	mkdir -p docs/load
	cp $(LOAD)/profile.md $(LOAD)/profile.svg docs/load/

# Common claims, held against runs: about half an hour on two processors, with
# nothing else on the machine, for latencies are measured too. Runs that were not as
# expected are named in the table.
CLAIMS := store/claims
claims: build
	./lockcheck claims run --store $(CLAIMS) || test $$? -eq 1
	./lockcheck claims table --store $(CLAIMS) --links "" > docs/claims.md

# What the stored runs of GUIDE_RUNS have shown is added to the evidence that is part of
# lockcheck, and docs/guide.md, docs/guide-runs.md and the advice in docs/reference are made of
# that. A run that is there stays.
GUIDE_RUNS ?= $(wildcard store)
EVIDENCE := internal/suites/guide/evidence.jsonl
guide: build
	if test -n "$(GUIDE_RUNS)"; then ./lockcheck guide collect --into $(EVIDENCE) $(GUIDE_RUNS); fi
	$(MAKE) build
	./lockcheck guide --runs docs/guide-runs.md > docs/guide.md
	./lockcheck reference docs/reference

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
	LOCKCHECK_LAYOUTS=1 go test -timeout 1h -run TestLayouts -v ./clusters

# Every lock of examples/ once, without faults: they must be valid. Each is tried, whatever
# becomes of the others.
EXAMPLES = $(shell grep -l '^client:' examples/*/*.yaml)
examples: build go-lock
	@not=; for lock in $(EXAMPLES); do echo "== $$lock"; \
	./lockcheck test --lock $$lock --nemesis none --expect valid || not="$$not $$lock"; done; \
	test -z "$$not" || { echo "not valid:$$not"; exit 1; }

.PHONY: go-lock
go-lock:
	go build -o examples/go-lock/ ./examples/go-lock

# The findings of the examples and their controls, TIMES times, into docs/findings-examples.md.
EXAMPLE_FINDINGS := store/findings-examples
example-findings: build
	./lockcheck findings run examples --times $(TIMES) --store $(EXAMPLE_FINDINGS) || test $$? -eq 1
	./lockcheck findings table examples --store $(EXAMPLE_FINDINGS) > docs/findings-examples.md

# The locks of the examples under the usual faults, into docs/comparison-examples.md.
EXAMPLE_COMPARISON := store/comparison-examples
example-comparison: build go-lock
	if test -d $(EXAMPLE_COMPARISON); then ./lockcheck compare --resume $(EXAMPLE_COMPARISON); else ./lockcheck compare -f examples/matrix.yaml --out $(EXAMPLE_COMPARISON); fi || test $$? -le 2
	! grep -q '"missing":' $(EXAMPLE_COMPARISON)/comparison.json
	cp $(EXAMPLE_COMPARISON)/comparison.md docs/comparison-examples.md

# Lockcheck itself: wrong locks must be caught, and right ones never accused; all
# checkers must agree with each other and with a search on random histories; whatever
# a file holds, nothing may panic; and how fast all that is. Last results: docs/trust.md and tools/*/results.md.
MUTANT_SEEDS ?= 20
mutants: build
	go run ./tools/mutants -lockcheck ./lockcheck -seeds $(MUTANT_SEEDS)

# From the name of each lock that is known to fail alone: up to an hour each, HUNT_SEEDS times. What
# ended is in tools/hunts/results.jsonl, and not made again. The table is in docs/hunt.md.
HUNT_SEEDS ?= 5
hunts: build library-versions
	go run ./tools/hunts -lockcheck ./lockcheck -seeds $(HUNT_SEEDS)
	go run ./tools/hunts -lockcheck ./lockcheck -seeds 1 -blind

# From the name of each mutant alone: guided against blind trials. The last result is in tools/hunts/results.md.
HUNT_TRIALS ?= 48
hunt-mutants: build
	go run ./tools/mutants -lockcheck ./lockcheck -hunt $(HUNT_TRIALS)

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

bench: build
	go run ./tools/overhead -lockcheck ./lockcheck
	go run ./tools/bench -lockcheck ./lockcheck

# What killed runs have left, and the binaries. Stored runs stay.
clean:
	if test -x lockcheck; then ./lockcheck clean; fi
	rm -rf dist
	rm -f lockcheck $(addprefix lockcheck-,$(LIBRARY_VERSIONS))
