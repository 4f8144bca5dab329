# The commands of the project. `make` alone lists them.
# Every target runs on a clean clone with Go installed; what else a target
# needs is fetched by it, or named with the way to get it.

SHELL     := bash
GO        ?= go
SEEDS     ?= 200
FUZZTIME  ?= 30s
ARGS      ?=
BENCHTIME ?= 1s
export GOFLAGS ?= -buildvcs=false

.PHONY: help run real device test bench lint fuzz breaks pages readme nightly release clean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## the whole scenario suite in the simulator (ARGS="A1 --seeds 50" for less, "--design document" for its holes; needs Go alone)
	@CGO_ENABLED=0 $(GO) build -o bin/simrun ./cmd/simrun
	@bin/simrun run $(ARGS)

REAL ?= A1 A2 A4 A5 A6 A7 A8 A9 A10 A12 A14 A15 B1 B2 B3 B4 B6 B7 B10 B13
real: ## scenarios with real processes, three minutes (REAL="A1 A6" for some, REAL= for all; needs libzmq)
	@scripts/deps
	@$(GO) build -o bin/server ./cmd/server
	@CGO_ENABLED=0 $(GO) build -o bin/simrun ./cmd/simrun
	@bin/simrun run $(REAL) --real bin/server $(ARGS)

DEVICE ?= A1 A2 A6 A7 A8 B2 B5 B6 B9 B10 B13
device: ## the stories about memory, on device memory over the stand-in driver (needs no GPU)
	@scripts/deps
	@scripts/standin
	@$(GO) build -o bin/server ./cmd/server
	@CGO_ENABLED=0 $(GO) build -o bin/simrun ./cmd/simrun
	@bin/simrun run $(DEVICE) --real bin/server --backend cuda --cuda-library bin/libcuda-standin.so $(ARGS)

test: ## every test; fetches what they need
	@scripts/deps
	@scripts/standin
	$(GO) test ./...

bench: ## speed of the simulator and of the core (BENCHTIME=1s)
	@scripts/deps
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...
	$(GO) test -count=1 -run TestScaleAgainstFakedClocks -v ./sim
	CGO_ENABLED=0 $(GO) run ./cmd/simrun bench

lint: ## gofmt, vet, staticcheck
	@scripts/lint

fuzz: ## every fuzz target for FUZZTIME each (30s)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz

breaks: ## break the core by hand, one defect at a time; each must turn the suite red
	@$(GO) run ./scripts/breaks $(ARGS)

PAGES := Browser|Link|Telephone|Page
pages: ## the pages in a headless Chromium: that they work, and how fast (needs one: VIGIL_CHROMIUM names it)
	VIGIL_BROWSER=required VIGIL_PAGES=measure CGO_ENABLED=0 $(GO) test -count=1 -v -run '$(PAGES)' ./cmd/simrun

mutation: ## every small mistake in core/server and core/worker, one at a time; which does the suite notice?
	@$(GO) run ./scripts/mutation $(ARGS)

readme: ## record the failing story of the README again
	@scripts/readme-story

nightly: ## full counts: 200 seeds of each design, ten rounds of real processes, long properties, 5 minutes of each fuzz target, every break
	@scripts/deps
	$(MAKE) lint
	RAPID_CHECKS=5000 $(GO) test -count=1 -timeout 60m ./...
	VIGIL_FULL=1 $(GO) test -count=1 -timeout 20m -v ./cmd/server/endurance
	VIGIL_FULL=1 $(GO) test -count=1 -timeout 20m -run TestTheDocumentsHoles -v ./scenarios/capsule
	VIGIL_FULL=1 $(GO) test -count=1 -timeout 20m -v -run TestCostOfAnEventGrowsNoFasterThanLog ./sim
	CGO_ENABLED=0 $(GO) run ./cmd/simrun run --seeds $(SEEDS)
	CGO_ENABLED=0 $(GO) run ./cmd/simrun run --design document --seeds $(SEEDS)
	CGO_ENABLED=0 $(GO) run ./cmd/simrun protections --seeds 500
	CGO_ENABLED=0 $(GO) run ./cmd/simrun protections --pairings --seeds 50
	CGO_ENABLED=0 $(GO) run ./cmd/simrun doctor
	$(MAKE) real REAL=
	$(MAKE) device ARGS="--seeds 0..2"
	$(MAKE) real REAL= ARGS="--design document"
	$(MAKE) real ARGS="--seeds 1..9"
	$(MAKE) breaks
	VIGIL_PAGES=measure $(GO) test -count=1 -v -run '$(PAGES)' ./cmd/simrun # without a browser it says so
	$(MAKE) fuzz FUZZTIME=5m

release: ## the programs as people deploy them, into bin/release
	@scripts/release

clean: ## remove what was built and what runs left behind
	rm -rf bin out
	find . -name '*.test' -type f -delete
	$(GO) clean -testcache
