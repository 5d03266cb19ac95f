# Targets: build variants test soak findings lint tidy images demo clean.

export CGO_ENABLED ?= 0

# The race detector needs a C compiler.
RACE := $(if $(shell command -v gcc 2>/dev/null),-race,)

.PHONY: build variants test soak findings lint tidy images demo clean

build:
	go build -o lockcheck ./cmd/lockcheck

# Workers with other versions of libraries, for the locks that are named after
# them. Each is a module of its own.
VARIANTS := $(notdir $(wildcard variants/*))
variants:
	for v in $(VARIANTS); do (cd variants/$$v && go build -o ../../lockcheck-$$v .) || exit 1; done

# Everything, on real servers where Docker is there. One package at a time:
# tests of locks must not starve each other.
test: lint
	CGO_ENABLED=$(if $(RACE),1,0) go test $(RACE) -p 1 -timeout 40m ./...

lint:
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	go vet ./...
	for v in $(VARIANTS); do (cd variants/$$v && go vet .) || { echo "variants/$$v: try make tidy"; exit 1; }; done

# The modules of the variants need the same modules as lockcheck.
tidy:
	go mod tidy
	for v in $(VARIANTS); do (cd variants/$$v && go mod tidy) || exit 1; done

# All images now, instead of on first use.
images: build
	./lockcheck images

# The first violation: workers are stopped beyond their lease, and write.
demo: build
	./lockcheck test --expect violation

# Every lock with and without pauses, every reproduction and its control, each
# TIMES times: hours. The table in docs/findings.md is made from the stored runs.
TIMES ?= 1
findings: build variants
	./lockcheck findings run --times $(TIMES)
	./lockcheck findings table

# lockcheck is killed at 200 random moments of its runs, ten of which are part of
# the tests: nothing may be left.
SOAK ?= 200
soak:
	LOCKCHECK_SOAK=$(SOAK) go test -timeout 4h -run TestKilledAnywhere -v ./harness

# What killed runs have left, and the binaries. Stored runs stay.
clean:
	if test -x lockcheck; then ./lockcheck clean; fi
	rm -f lockcheck $(addprefix lockcheck-,$(VARIANTS))
