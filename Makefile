# Targets: build test findings lint images demo clean.

export CGO_ENABLED ?= 0

# The race detector needs a C compiler.
RACE := $(if $(shell command -v gcc 2>/dev/null),-race,)

.PHONY: build test findings lint images demo clean

build:
	go build -o lockcheck ./cmd/lockcheck

# Everything, on real servers where Docker is there. One package at a time:
# tests of locks must not starve each other.
test: lint
	CGO_ENABLED=$(if $(RACE),1,0) go test $(RACE) -p 1 -timeout 40m ./...

lint:
	@test -z "$$(gofmt -l .)" || { echo "not formatted:"; gofmt -l .; exit 1; }
	go vet ./...

# All images now, instead of on first use.
images: build
	./lockcheck images

# The first violation: workers are stopped beyond their lease, and write.
demo: build
	./lockcheck test --expect violation

# Every lock with and without pauses, every reproduction and its control, each
# TIMES times: hours. The table in docs/findings.md is made from the stored runs.
TIMES ?= 1
findings: build
	./lockcheck findings run --times $(TIMES)
	./lockcheck findings table

# What killed runs have left, and the binary. Stored runs stay.
clean:
	if test -x lockcheck; then ./lockcheck clean; fi
	rm -f lockcheck
