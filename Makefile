# Everything that a contributor runs. `make help` lists it.

# Kubernetes of the test control plane; any of the last six minor releases.
K8S_VERSION ?= 1.37.1
# What deflake repeats, how often, and which tests of it.
PKG   ?= ./internal/core/...
COUNT ?= 20
# How many random drains proof-surge makes, and what they are drawn from; 0 for a new seed.
DRAINS ?= 200
SEED   ?= 0
# How long fuzz spends on each fuzz test.
FUZZTIME ?= 20s

GOLANGCI_LINT  := go tool -modfile=$(CURDIR)/go.tools.mod golangci-lint
CONTROLLER_GEN := go tool -modfile=go.tools.mod controller-gen
PROVIDER       := internal/sandbox/provider/api
GENERATED      := api charts docs/reference $(PROVIDER)
# What the manager needs only if it acts on Machines is a role of its own.
OF_MACHINES     = $(CURDIR)/internal/controller/cluster $(CURDIR)/internal/controller/machine $(CURDIR)/internal/workload
# And only if it rolls out maintenances over many nodes.
OF_ROLLOUTS     = $(CURDIR)/internal/controller/rollout
# And only if it answers EvictionRequests.
OF_REQUESTS     = $(CURDIR)/internal/controller/evictionrequest $(CURDIR)/internal/controller/evictor $(CURDIR)/internal/controller/requester
# What the agent of a node needs, which is another program under another account.
OF_AGENT        = $(CURDIR)/internal/agent $(CURDIR)/internal/agent/logind $(CURDIR)/cmd/ebbtide-agent
# What it needs besides where it runs as a unit of its host.
OF_HOST         = $(CURDIR)/internal/agent/host
# What the verbs of its binary need, which run under accounts of their own.
OF_VERBS        = $(CURDIR)/internal/certificate $(CURDIR)/internal/uninstall $(CURDIR)/internal/check
# The packages with Go benchmarks that need no control plane, so that nothing else is built for them.
BENCHMARKED     = $(shell git grep --untracked -lE '^func Benchmark' -- '*_test.go' ':!test/bench' ':!test/node' ':!test/capi' | xargs -n1 dirname | sort -u | sed 's,^,./,')
export K8S_VERSION
# One build cache for programs and tests: with and without cgo, all packages are compiled twice.
export CGO_ENABLED = 0

.DEFAULT_GOAL := help
.PHONY: help build controlplane test scenario lint generate verify deflake fuzz bench bench-fleet sandbox sandbox-down demo demo-machines demo-node demo-fleet demo-eviction-request test-versions proof-eviction-requests proof-surge proof-placement proof-daemonset proof-locks proof-leaders proof-preflight proof-rollouts proof-agent bench-node model image release reproduce

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build all binaries and the shell completion into .bin/
	go build -o .bin/ ./cmd/...
	cp cmd/kubectl-ebbtide/kubectl_complete-ebbtide .bin/

# The go command compiles in silence, so this prints a line before it. Listing with -export
# compiles. GOGC is that of internal/sandbox/gotool.go: it must not reach the control plane, which
# go run would pass it to.
compile = n=$$(go list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' ./$(1) | wc -l); test $$n -lt 50 || { \
	echo "compiling $(1) first: $$n packages, about 2 min on two cores" >&2; \
	GOGC=400 GOMEMLIMIT=2GiB go list -export -deps ./$(1) >/dev/null; }
.PHONY: sandbox-program
sandbox-program:
	@$(call compile,cmd/sandbox)

controlplane: sandbox-program ## Build etcd, Kubernetes, kubectl and kwok into .bin/ (K8S_VERSION=1.37.1; KUBERNETES=release downloads them)
	@go run ./cmd/sandbox build

# No test compiles anything: a set of programs is built before.
.PHONY: programs programs-all node-binaries test-node test-all test-busy
define prebuild
@$(call compile,test/prebuilt/build)
@go run ./test/prebuilt/build
endef
programs: ## Build the programs that make test runs: control plane, kubectl and our own
	$(prebuild) programs

programs-all: ## Build the programs that make test-all runs
	$(prebuild) programs programs-all karpenter $(if $(ROOT),nodes node-binaries)

node-binaries: ## Build the programs of real nodes: kubelet, kube-proxy, containerd, network plugins
	$(prebuild) programs nodes node-binaries

# Set where the stories on real nodes can run.
ROOT := $(if $(filter Linux-0,$(shell uname)-$(shell id -u)),1)
# The packages of the second tier, so that no others are linked for it.
LONG = $(shell git grep --untracked -lE '^func TestLong' -- '*_test.go' ':!test/bench' ':!test/node' | xargs -n1 dirname | sort -u | sed 's,^,./,')
# go test cannot see that a scenario runs the manager as a process of its own, so it must not
# answer from its cache. Most stories wait most of the time, so several packages run at once, and
# several stories of each; those that take longest go first. make verify vets. Linking without
# debug information is faster, and with more memory less time goes into collecting garbage.
TEST := go test -count=1 -vet=off -ldflags=-w -timeout 60m
test test-all: export GOGC := 300
test: programs ## Run the first tier of tests: units, the API, one story for each promise
	$(TEST) -p 3 -parallel 8 -skip '^TestLong' ./test/scenario ./test/api ./test/demo ./test/uninstall ./test/evictionrequest ./test/step ./test/webhook ./test/cluster ./test/terminal ./...

test-all: programs-all ## Run the second tier of tests: TestLong*, and real nodes if run as root
	$(TEST) -p 2 -parallel 4 -run '^TestLong' $(LONG)
	cd test/bench && $(TEST) ./...
	$(if $(ROOT),cd test/node && $(TEST) ./...)

# Shows that no test depends on an idle machine.
test-busy: ## Run both tiers on busy cores (TIMES=3)
	@test/busy $(or $(TIMES),3)

RUN ?= .
scenario: programs ## Run stories on a real control plane (RUN=TestName KEEP=-keep)
	go test -count=1 -v -timeout $(if $(KEEP),0,60m) -run '$(RUN)' ./test/scenario $(KEEP)

.PHONY: attack
attack: programs ## Attack with the rights of Ebbtide, and show what rejects it
	go test -count=1 -v -run TestAttacksAreRefused ./test/attack

test-versions: programs ## Test Kubernetes 1.37 to 1.33 and write docs/versions.md (VERSIONS=1.36.4,1.33.13)
	@go run ./test/version $(if $(VERSIONS),-versions $(VERSIONS))

# Everything on it is real, so it needs Linux and root; test/node/packages installs the rest.
test-node: node-binaries ## Run the stories on real nodes (Linux, root)
	cd test/node && go test -count=1 -v -timeout 20m ./...

# The machine has one slow processor. The second time, its cgroups belong to systemd.
.PHONY: test-node-v2
test-node-v2: VM := ../../.bin/vm
test-node-v2: node-binaries ## Run short stories on real nodes in qemu with cgroup v2 (Debian)
	test/node/vm/kernel .bin/vm/kernel
	cd test/node && go build -o $(VM)/vm ./vm && go test -c -o $(VM)/node.test .
	cd test/node && for systemd in false true; do \
		$(VM)/vm -systemd=$$systemd $(VM)/node.test -test.v -test.timeout 60m -test.run 'DoesNotBoot|CgroupsOfANode|NothingOutlives' || exit 1; \
	done

.PHONY: test-capi bench-capi
test-capi: programs-all ## Run the stories with the Cluster API manager
	go test -count=1 -v -parallel 2 -timeout 60m ./test/capi

# Neither side is to wait for an API server that collects its garbage: it shares the cores.
bench-capi: export GOGC := 300
bench-capi: programs-all ## Compare drains of 20 Machines by Cluster API and by the bridge (30 minutes)
	go test -count=1 -run '^$$' -bench . -benchtime 1x -timeout 60m ./test/capi

proof-agent: node-binaries ## Kill agents 2,000 times, and a kubelet 50 times during a hold (Linux, root)
	go test -count=1 -v -run TestNothingIsLostInCrashes ./internal/agent -crashes 2000
	cd test/node && go test -count=1 -v -timeout 20m -run 'TestLongStaticPodsOnARealKubelet/(a_pod_leaves|it_stays_away)' . -kubelet-restarts 50

bench-node: node-binaries ## Measure static pods on a real node, and an idle agent (Linux, root)
	cd test/node && go test -run '^$$' -bench StaticPod -benchtime 10x .
	cd test/node && go test -run '^$$' -bench IdleAgent -benchtime 1x . -idle 10m

lint: ## Check the code against the rules of docs/rules.md
	$(GOLANGCI_LINT) run ./...
	cd test/bench && $(GOLANGCI_LINT) run ./...
	cd test/bench/lifecycle && $(GOLANGCI_LINT) run ./...
	cd test/node && $(GOLANGCI_LINT) run ./...

generate: ## Generate deep copies, apply configurations, CRDs, roles, docs/reference and rendered charts
	$(CONTROLLER_GEN) object applyconfiguration paths=./api/...
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=charts/ebbtide/files/crds
	go run ./internal/crdrule charts/ebbtide/files/crds internal/crdrule/nodemaintenances.yaml internal/crdrule/noderollouts.yaml internal/crdrule/evacuations.yaml
	go run ./internal/apidoc charts/ebbtide/files/crds api/v1alpha1 . docs/reference
	$(CONTROLLER_GEN) object crd paths=./$(PROVIDER) output:crd:dir=$(PROVIDER)/crds
	$(CONTROLLER_GEN) rbac:roleName=ebbtide,fileName=role.yaml $(addprefix paths=,$(filter-out $(OF_MACHINES) $(OF_ROLLOUTS) $(OF_REQUESTS) $(OF_VERBS) $(OF_AGENT) $(OF_HOST),$(shell go list -f '{{.Dir}}' ./internal/... ./cmd/...))) output:rbac:dir=charts/ebbtide/files
	$(CONTROLLER_GEN) rbac:roleName=ebbtide-machines,fileName=role-machines.yaml $(addprefix paths=,$(OF_MACHINES)) output:rbac:dir=charts/ebbtide/files
	$(CONTROLLER_GEN) rbac:roleName=ebbtide-rollouts,fileName=role-rollouts.yaml paths=$(OF_ROLLOUTS) output:rbac:dir=charts/ebbtide/files
	$(CONTROLLER_GEN) rbac:roleName=ebbtide-eviction-requests,fileName=role-eviction-requests.yaml $(addprefix paths=,$(OF_REQUESTS)) output:rbac:dir=charts/ebbtide/files
	$(CONTROLLER_GEN) rbac:roleName=ebbtide-agent,fileName=role-agent.yaml $(addprefix paths=,$(OF_AGENT)) output:rbac:dir=charts/ebbtide/files
	$(CONTROLLER_GEN) rbac:roleName=ebbtide-agent-host,fileName=role-agent-host.yaml paths=$(OF_HOST) output:rbac:dir=charts/ebbtide/files
	$(CONTROLLER_GEN) rbac:roleName=ebbtide-certificate,fileName=role-certificate.yaml paths=./internal/certificate output:rbac:dir=charts/ebbtide/files
	$(CONTROLLER_GEN) rbac:roleName=ebbtide-uninstall,fileName=role-uninstall.yaml paths=./internal/uninstall output:rbac:dir=charts/ebbtide/files
	$(CONTROLLER_GEN) rbac:roleName=ebbtide-check,fileName=role-check.yaml paths=./internal/check output:rbac:dir=charts/ebbtide/files
	go run ./internal/helmrender ebbtide-system '{machines: {enabled: true}, evictionRequests: {enabled: true}}' charts/sandbox.yaml charts/sandbox-older.yaml
	go test ./charts/helm ./cmd/ebbtide ./cmd/ebbtide-agent ./internal/cli -run '^(TestWhatIsInstalled|TestReferencePageOf.*)$$' -update

# A benchmark that nobody runs breaks unseen; running each once takes seconds.
verify: generate lint ## Check that the tree is generated, tidy, formatted and linted
	go test -run '^$$' -bench . -benchtime 1x $(BENCHMARKED)
	go test -count=1 -run '^TestProse' ./test/arch
	go mod tidy -diff
	cd test/bench && go mod tidy -diff
	cd test/bench/lifecycle && go mod tidy -diff
	cd test/node && go mod tidy -diff
	cd internal/release/krew && go mod tidy -diff
	cd internal/release/testdata/tiny && go mod tidy -diff
	cd test/alert/promtool && go mod tidy -diff
	git diff --exit-code
	@test -z "$$(git status --porcelain -- $(GENERATED))" || { git status --short -- $(GENERATED); exit 1; }

.PHONY: site
site: ## Build the documentation as a website into .bin/site (needs mkdocs)
	mkdocs build --strict --quiet

deflake: ## Repeat tests in random order with the race detector (PKG=./… RUN=Test… COUNT=20)
	CGO_ENABLED=1 go test -race -shuffle=on -count=$(COUNT) -run '$(RUN)' -failfast $(PKG)

fuzz: ## Run each fuzz test for FUZZTIME
	@go list -f '{{range .TestGoFiles}}{{$$.Dir}}/{{.}} {{end}}{{range .XTestGoFiles}}{{$$.Dir}}/{{.}} {{end}}' ./... | \
	xargs grep -oHE '^func Fuzz[A-Za-z0-9_]+' | while IFS=: read -r file func; do \
		go test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
	done

proof-eviction-requests: programs ## Check 10,000 Eviction statuses by the validation of Kubernetes, and simulate 10,000 evictions
	cd test/bench/lifecycle && go test -count=1 -v ./...
	go test -count=1 -v -run TestRandomEvictions ./internal/core/evictionrequest -runs 10000
	go test -count=1 -v -timeout 60m -run TestRandomSteps ./test/step -steps 10000

proof-surge: programs ## Check that Services stay up in random drains (DRAINS=200 SEED=0)
	cd test/proof && go test -count=1 -timeout 60m -parallel 6 -run 'TestLongAServiceIsNeverDown|TestLongKubectlAlone' -drains $(DRAINS) -seed $(SEED)

proof-rollouts: ## Simulate 20,000 fleets of rollouts (FLEETS=20000, 20 minutes)
	go test -count=1 -timeout 60m -run '^TestLongSimulation$$' ./internal/core/rollout -fleets $(or $(FLEETS),20000)

proof-placement: programs ## Compare predicted placements with the scheduler (CLUSTERS=60 SEED=0)
	cd test/proof && go test -count=1 -timeout 30m -parallel 4 -run 'TestLongPodsFitWhereTheSchedulerPutsThem' -placements $(or $(CLUSTERS),60) -seed $(SEED)

proof-daemonset: programs ## Check that DaemonSet pods stay away for a minute and return within 5 s
	cd test/scenario && go test -v -count=1 -timeout 15m -parallel 2 -run 'DaemonSet' -prove

proof-locks: programs ## Kill the manager after every write of in-place drains
	cd test/scenario && go test -v -count=1 -timeout 15m -run 'TestLongLocksOutliveTheManager' -prove

proof-leaders: programs ## Test leader failover by killing, pausing and stealing leases
	cd test/scenario && go test -v -count=1 -timeout 40m -run 'TestLongSeveralManagers' -prove

proof-preflight: programs ## Compare forecasts with drains of random clusters (CLUSTERS=300 SEED=0)
	cd test/proof && go test -count=1 -timeout 60m -parallel 8 -run TestLongForecastsComeTrue -clusters $(or $(CLUSTERS),300) -seed $(SEED)

model: ## Check the protocol of drain locks, and broken variants of it, with Spin
	@docs/model/check.sh

bench: programs ## Run the benchmarks against the oracle, kubectl drain and Cluster API
	cd test/bench && go run . -benchmarks '$(BENCHMARKED)'
	$(MAKE) bench-capi

bench-fleet: programs ## Compare a NodeRollout over 50 nodes with a loop over kubectl drain (20 minutes)
	cd test/bench && go run . -scenarios fleet -contenders kubectl,ebbtide -json ../../bench-fleet.json

image: ## Build the manager image into .bin/release: an OCI layout, and an archive for each architecture
	go run ./internal/release image .bin/release

release: ## Build all release artifacts into .bin/release (PLATFORMS=linux/amd64; 30 minutes the first time)
	go run ./internal/release all .bin/release $(PLATFORMS)

reproduce: ## Check that the build of the manager is reproducible
	go run ./internal/release reproduce

sandbox: sandbox-program ## Start a control plane with simulated nodes and the manager
	@go run ./cmd/sandbox up

sandbox-down: ## Stop the sandbox and remove its files
	@go run ./cmd/sandbox down

demo: sandbox-program ## Drain a node of a real control plane (KUBERNETES=release downloads most of it)
	@go run ./cmd/sandbox demo

demo-machines: sandbox-program ## Create and delete a Machine on a real control plane
	@go run ./cmd/sandbox demo machines

demo-node: sandbox-program ## Drain a static pod from a real node and restore it (Linux, root)
	@go run ./cmd/sandbox demo node

demo-fleet: sandbox-program ## Roll a new kernel out to twelve simulated nodes
	@go run ./cmd/sandbox demo fleet

demo-eviction-request: sandbox-program ## Evict a pod with a responder (Kubernetes 1.37)
	@go run ./cmd/sandbox demo eviction-request
