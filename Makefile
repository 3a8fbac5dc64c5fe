# Slipway. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# NVIDIA's header marks half of what go-nvml wraps as deprecated.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations

# What is built, linted and tested is compiled once, since the paths in it are the same.
# Whether files are not committed is no part of it, so that one commit gives the same bytes.
export GOFLAGS := -trimpath -buildvcs=false

VERSION := $(shell cat build/VERSION)
COMMIT  := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X slipway/backend/place.Version=$(VERSION) -X slipway/backend/place.Commit=$(COMMIT)
TAGS    := desktop,production,webkit2_41
BIN     := build/bin

# Only Linux has the driver that the reader of NVIDIA devices loads. It must bind
# the driver's functions late, because each driver lacks some.
LATE    := -extldflags=-Wl,-z,lazy
ARCH    := $(shell go env GOARCH)
READER  := $(if $(filter linux,$(shell go env GOOS)),gpu/nvml/payload/bin/slipway-gpu-linux-$(ARCH))
# What runs inside the containers of this machine.
GUEST   := backend/guest/payload/bin/slipway-guest-linux-$(ARCH)

# A package also carries what machines of the other architecture are given.
OTHER       := $(if $(filter amd64,$(ARCH)),arm64,amd64)
GUESTS      := $(GUEST) backend/guest/payload/bin/slipway-guest-linux-$(OTHER)
CROSS_arm64 := aarch64-linux-gnu-gcc
CROSS_amd64 := x86_64-linux-gnu-gcc

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## install what is missing, build, and open the app (without a display: serve)
	@build/ci/setup.sh build
	@$(MAKE) build
	@build/ci/run.sh

.PHONY: dev
dev: build ## serve with the interface reloading from source
	@build/ci/dev.sh

.PHONY: build
build: $(GUEST) $(READER) ui ## build build/bin/slipway (headless) and build/bin/slipway-desktop (window)
	@echo "slipway: building the programs"
	@CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o $(BIN)/slipway .
	@go build -tags $(TAGS) -ldflags '$(LDFLAGS) $(if $(READER),$(LATE))' -o $(BIN)/slipway-desktop .
	@ls -l $(BIN)/slipway $(BIN)/slipway-desktop | awk '{printf "  %s  %.1f MB\n", $$NF, $$5/1e6}'

.PHONY: agents
agents: guest ## build build/bin/slipway-linux-{amd64,arm64}, which other machines are given
	@for arch in amd64 arm64; do CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -tags lean -ldflags '$(LDFLAGS)' -o $(BIN)/slipway-linux-$$arch .; done

.PHONY: guest
guest: $(GUESTS) ## build the program that runs inside containers, for both architectures

.PHONY: FORCE
backend/guest/payload/bin/slipway-guest-linux-%: FORCE
	@CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -ldflags '-s -w' -o $@ ./backend/guest/slipway-guest

gpu/nvml/payload/bin/slipway-gpu-linux-%: FORCE
	@CGO_ENABLED=1 GOARCH=$* $(if $(filter-out $(ARCH),$*),CC=$(CROSS_$*)) go build -ldflags '-s -w $(LATE)' -o $@ ./gpu/nvml/slipway-gpu

.PHONY: ui
ui: frontend/dist/index.html ## build the user interface

frontend/node_modules/.package-lock.json: frontend/package-lock.json
	@echo "slipway: fetching the libraries of the interface"
	@cd frontend && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

UI_SOURCES := $(shell find frontend/src frontend/public/*.* frontend/index.html frontend/vite.config.ts frontend/packed.ts frontend/tsconfig.json \
  frontend/notebook/src frontend/notebook/index.html frontend/notebook/vite.config.ts frontend/notebook/tsconfig.json -type f 2>/dev/null)
# The documentation is part of the interface, so that it is there without a network.
DOCS := frontend/public/docs/index.html
$(DOCS): SECURITY.md $(shell find build/docs -type f)
	@go run ./build/docs/site $(@D)

.PHONY: docs
docs: $(DOCS) ## build the documentation as static pages, frontend/public/docs

frontend/dist/index.html: frontend/node_modules/.package-lock.json $(UI_SOURCES) $(DOCS)
	@echo "slipway: building the interface"
	@cd frontend && npm run --silent build
	@touch $@

.PHONY: test
test: ## install what is missing and test what a change can break, with real Docker and a real browser
	@build/ci/beside.sh "$(MAKE) $(GUEST) frontend/node_modules/.package-lock.json" "build/ci/setup.sh build test"
	@build/ci/beside.sh "build/ci/docker.sh true" "$(MAKE) --jobs 2 build"
	@build/ci/test.sh

.PHONY: verify
verify: ## lint, test again under the race detector, with a Docker of today and Slurm, made first; make and install the packages
	@build/ci/setup.sh build test
	@$(MAKE) build
	@build/ci/verify.sh

.PHONY: offline
offline: build ## all browser tests that need no Docker, most of them against the demo, where no network is
	@build/ci/offline.sh npm --prefix frontend run --silent e2e -- --project offline --project thorough

.PHONY: check
check: lint ## lint, and the quick tests that need neither Docker nor a browser
	@go test -short ./...
	@cd frontend && npm test --silent

.PHONY: lint
lint: $(GUEST) frontend/node_modules/.package-lock.json ## vet, golangci-lint, eslint, types, generated files current
	@build/ci/lint.sh

.PHONY: gen
gen: frontend/node_modules/.package-lock.json ## generate the agent's remote methods, the page's types, the OpenAPI document, the references, the licences
	@go run ./build/rpcgen
	@go run ./build/tsgen
	@go run ./build/docgen
	@go run ./build/notices/gen

.PHONY: soak
soak: ## serve a demo for an hour, which is 60 of its own, and judge memory, goroutines and books
	@go build -o build/.cache/soak ./build/bench/soak
	@build/.cache/soak

.PHONY: bench
bench: ## measure against Docker, nginx and ssh, and (as root) the tunnel against OpenSSH; prints tables
	@build/ci/setup.sh build test bench
	@$(MAKE) build
	@build/ci/docker.sh build/ci/bench.sh
	@go build -o build/.cache/tunnel-bench ./build/bench/tunnel
	@nice -n -19 build/.cache/tunnel-bench

.PHONY: package
package: ## install what is missing, make the packages for all platforms under build/bin/packages
	@build/ci/setup.sh build package
	@$(MAKE) guest ui gpu/nvml/payload/bin/slipway-gpu-linux-$(ARCH) gpu/nvml/payload/bin/slipway-gpu-linux-$(OTHER)
	@VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' TAGS='$(TAGS)' LATE='$(LATE)' build/ci/package.sh

.PHONY: release-check
release-check: ## make the packages twice, with the same bytes, then install, upgrade and remove them
	@build/ci/setup.sh build test package wine
	@$(MAKE) package
	@build/ci/reproducible.sh --quick
	@build/ci/verify.sh installed

.PHONY: clean
clean: ## remove what was built and the test engine's data
	@build/ci/dockerd.sh stop || true
	@build/ci/moderndocker.sh stop || true
	@[ ! -d build/.cache/slurm ] || build/slurm/rig.sh remove
	@rm -rf $(BIN) build/.cache frontend/dist frontend/notebook/dist frontend/node_modules backend/guest/payload/bin/slipway-guest-* gpu/nvml/payload/bin/slipway-gpu-*
