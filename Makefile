# Two commands do all the set-up: `make run` and `make test`.

GO    ?= go
ADDR  ?= 127.0.0.1:8080
DB    ?= sqlite:var/chat.db
PKG   ?=

# The checking tools live in a module of their own.
TOOL = $(GO) tool -modfile=tools/go.mod
BENCHTOOL = $(GO) tool -modfile=../tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help run docs test test-full servers bench fanout lint fmt fix dead arch trace explore soak tidy

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build the chat server and serve it on http://127.0.0.1:8080 (ADDR=, DB=)
	@mkdir -p var
	$(GO) build -o var/chat ./examples/chat
	@exec ./var/chat -addr "$(ADDR)" -db "$(DB)"

docs: ## build the documentation site in var/site; a dead link is an error
	cd site && $(GO) run . -source .. -out ../var/site

test: servers ## every package, each engine once, in a few minutes; installs servers where it may (PKG=, RUN=)
	@.ci/gotest quick $(if $(RUN),-run='$(RUN)') $(PKG)

test-full: servers ## the race detector, all matrices and mutants, kill tests; in half an hour (PKG=, RUN=)
	@.ci/gotest full $(if $(RUN),-run='$(RUN)') $(PKG)

servers:
	@.ci/servers

bench: ## measure all that is promised about speed, in fifty minutes (QUICK=1 for 3 minutes, ROW=regexp, PROFILE=directory)
	@.ci/servers postgresql mariadb-server redis-server etcd-server
	@mkdir -p var
	@cd bench && $(GO) build -o ../var/bench . && exec ../var/bench $(if $(QUICK),-quick) $(if $(ROW),-row '$(ROW)') $(if $(PROFILE),-profile '$(abspath $(PROFILE))')

fanout: ## measure the chat's hub beside centrifuge with 10,000 sessions, in four minutes (CLIENTS=)
	@mkdir -p var
	@cd bench && $(GO) build -o ../var/fanout ./fanout
	@ulimit -n "$$(ulimit -Hn)" && exec var/fanout -clients $(or $(CLIENTS),10000)

lint: ## golangci-lint, go fix, dead code, go.mod
	$(TOOL) golangci-lint run ./...
	cd bench && $(BENCHTOOL) golangci-lint run ./...
	cd examples/brokers && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	cd examples/edge && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	cd examples/frameworks && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	cd examples/orm && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	cd site && $(BENCHTOOL) golangci-lint run ./...
	for dir in . bench examples/brokers examples/edge examples/frameworks examples/orm site; do (cd $$dir && $(GO) fix -diff ./... && $(GO) mod tidy -diff) || exit 1; done
	@$(MAKE) --no-print-directory dead

dead: ## list functions that no program and no test reaches; there must be none
	@found="$$($(TOOL) deadcode -test ./... && cd bench && $(BENCHTOOL) deadcode -test ./...)" || exit 1; \
	if [ -n "$$found" ]; then echo "unreachable:"; echo "$$found"; exit 1; fi

fmt: ## format everything
	$(TOOL) golangci-lint fmt ./...
	cd bench && $(BENCHTOOL) golangci-lint fmt ./...

fix: ## write things the way today's Go writes them
	$(GO) fix ./...
	cd bench && $(GO) fix ./...

arch: ## the import law and the house rules; UPDATE=1 redraws the picture
	$(GO) test -count=1 ./internal/archtest $(if $(UPDATE),-update)

trace: ## list the functions that one warm request enters (STORE=memory or sqlite, REPLAY=1)
	@mkdir -p var/trace
	$(GO) build -cover -covermode=atomic -coverpkg=./... -o var/trace/trace ./test/trace
	@GOCOVERDIR=var/trace var/trace/trace -list -store $(or $(STORE),memory) $(if $(REPLAY),-replay)

explore: ## every interleaving of three callers, or of two callers with sweeper and healer; takes long
	$(GO) run ./internal/sim/cmd/explore

soak: ## kill chat servers, workers and consumers at every point of their path, and try thousands of random histories
	SEMEL_SOAK=1 STORETEST_HISTORIES=2000 $(GO) test -count=1 -timeout 3h -v ./cmd/semel/internal/conform ./examples/... ./store/... ./test/tasks ./test/messages

tidy: ## go.mod of the library, of the benchmarks, of the examples, of the site and of the tools
	for dir in . bench examples/brokers examples/edge examples/frameworks examples/orm site tools; do (cd $$dir && $(GO) mod tidy) || exit 1; done
	$(GO) mod tidy -modfile=.ci/newest.mod
