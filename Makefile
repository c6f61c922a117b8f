# Everything that is done to this tree. `make` alone prints the list.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
# Packages whose goroutines share data: run under the race detector.
RACE     := $(addprefix ./runtime/,buffer exchange shuffle inflight task worker master cluster control timeline failpoint storage) ./harness/trial
# Contended runs of the multi-rescale trial in `make soak`.
SOAK     ?= 300
# Random kills of three-stage batch jobs, and of as many on processes.
BATCH_SOAK ?= 200
# How long each fuzz target runs in `make fuzz`.
FUZZTIME ?= 10s
# Extra flags for `go test`, as in `make test TESTFLAGS=-count=1`.
TESTFLAGS ?=
# Benchmarks that `make bench` runs, a regular expression.
BENCH    ?= .

.PHONY: help
help: ## Print this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/benchrun.
	$(GO) build -o bin/benchrun ./cmd/benchrun

.PHONY: test
test: ## All tests. Says at the end what was skipped and why. Under 8 minutes on 2 cores.
	$(GO) test -json -timeout 8m $(TESTFLAGS) ./... | $(GO) run ./scripts/testlog

.PHONY: race
race: ## The concurrent packages under the race detector (needs a C compiler).
	$(GO) test -race -json -timeout 15m $(TESTFLAGS) $(RACE) | $(GO) run ./scripts/testlog

.PHONY: matrix
matrix: ## Every row of the rescale matrix on every recovery path, up to an hour.
	MATRIX=all $(GO) test -json -count=1 -timeout 60m -run TestRescaleMatrix ./runtime/cluster | $(GO) run ./scripts/testlog

.PHONY: soak
soak: ## The multi-rescale trial 300 times (SOAK=n), two busy loops beside each; random kills of batch jobs (BATCH_SOAK=n). No record lost.
	SOAK=$(SOAK) $(GO) test -v -count=1 -timeout 5h -run TestSoak ./runtime/cluster
	BATCH_SOAK=$(BATCH_SOAK) $(GO) test -count=1 -timeout 5h -run 'TestBatchKills|TestBatchProcessKills' ./runtime/cluster

.PHONY: bench
bench: ## Benchmarks of the engine, each figure beside its target (BENCH=regexp).
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 1x -timeout 60m -p 1 ./runtime/... | $(GO) run ./scripts/benchtable

.PHONY: fuzz
fuzz: ## Each fuzz target for 10 s (FUZZTIME=…).
	@grep -rl '^func Fuzz' --include=*_test.go . | xargs -n 1 dirname | sort -u | while read -r dir; do \
	  for f in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$dir/*_test.go); do \
	    echo "== $$dir $$f"; \
	    $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$dir; \
	  done; \
	done

.PHONY: lint
lint: ## gofmt, go vet, staticcheck.
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

.PHONY: tidy-check
tidy-check: ## go.mod and go.sum hold exactly what is needed.
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: quickstart
quickstart: ## The example of the README: three recovery paths compared in under a minute.
	$(GO) run ./cmd/benchrun run configs/quickstart.toml

.PHONY: ci
ci: ## What a change has to pass, in the order of price.
	.ci/run

.PHONY: clean
clean: ## Remove built programs and profiles. Results stay.
	rm -rf bin benchrun
	find . -name '*.test' -o -name '*.prof' -o -name '*.pprof' | xargs -r rm -f
