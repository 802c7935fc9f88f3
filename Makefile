# Burano. `make help` lists what can be made.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CGO_ENABLED := 0
# Without the folder in what is compiled, programs and tests share the compiled packages, and so do several checkouts.
export GOFLAGS := -buildvcs=false -trimpath
BUILD := $(CURDIR)/build
export BURANO_NODE_IMAGE := $(BUILD)/node-image.tar
PREBUILT_FLAGS = $(if $(PREBUILT),--prebuilt $(if $(PREBUILT_BASE),--prebuilt-base $(PREBUILT_BASE)))

IMAGE_FLAGS = $(PREBUILT_FLAGS) $(addprefix --with ,$(WITH))

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install the Debian packages that everything else needs (done by the others by themselves)
	@test/setup/packages.sh

.PHONY: dashboard
dashboard: ## Build the web dashboard, which the program embeds (needs Node; done by the others by themselves)
	@web/dashboard/build.sh

.PHONY: build
build: dashboard ## Build the programs burano and localcloud into build/
	@test/setup/compile.sh $(BUILD)

.PHONY: check
check: setup ## The quick loop: format, vet, lint, dead code, rules of the house, unit tests
	@test/check.sh

.PHONY: release
release: setup build ## Pack the program for Debian and as a container image, with bill of materials and checksums, into build/release
	@images/package/build.sh $(BUILD)/burano $(BUILD)/release

.PHONY: image
image: setup build ## Build the node image (about 10 minutes the first time, then seconds; PREBUILT=1: with the projects' own programs; WITH=docker: with Docker)
	@$(BUILD)/burano image build --source images --output $(BURANO_NODE_IMAGE) $(IMAGE_FLAGS)
	@test/setup/tools.sh $(BURANO_NODE_IMAGE) $(BUILD)/bin

.PHONY: image-disk
image-disk: setup build ## Build the node image as a disk for machines of a real cloud (FORMAT=raw: not compressed; WITH=docker: with Docker)
	@test/setup/packages.sh dosfstools e2fsprogs fdisk grub-common grub-efi-amd64-bin grub-pc-bin mtools qemu-utils
	@$(BUILD)/burano image build --source images --format $(or $(FORMAT),qcow2) --output $(BUILD)/node-image.$(or $(FORMAT),qcow2) $(IMAGE_FLAGS)

.PHONY: lab
lab: setup build image ## Keep local cloud and image up, so that an end-to-end case can be repeated in seconds
	@test/demo/demo.sh lab

.PHONY: test
test: check image ## Everything that must hold, end to end too
	@test/all.sh

.PHONY: test-upgrade
test-upgrade: setup build image ## Upgrade a cluster from the minor version of Kubernetes before, under load (builds that image first: 10 minutes)
	$(BUILD)/burano image build --source images --kubernetes 1.35 --output $(BUILD)/former/node-image.tar $(PREBUILT_FLAGS)
	BURANO_FORMER_NODE_IMAGE=$(BUILD)/former/node-image.tar go test -count=1 -timeout 60m -v -run '^TestACluster(IsUpgraded|IsUpgradedWhose.*|OfThreeMastersIsUpgraded|OfThreeMastersGoesBack.*)$$' ./test/e2e

# A version whose database has fewer tables than today's.
FORMER ?= $(shell git rev-list -1 --before=2026-11-23T00:00Z HEAD)

# The last version that identified objects by their places in a file.
FORMER_CLUSTER ?= $(shell git rev-list -1 --before=2026-11-26T20:00Z HEAD)

.PHONY: test-servers
test-servers: setup build ## Three servers behind HAProxy over PostgreSQL under load: upgraded from a former version (FORMER=COMMIT), stopped, killed; the database fails over
	@test/servers/former.sh $(FORMER) $(BUILD)/former/burano
	BURANO_FORMER=$(BUILD)/former/burano go test -count=1 -timeout 30m -v ./test/servers

.PHONY: test-former
test-former: setup build image ## A cluster and an application that a former version deployed go on with today's: edited, scaled and deleted (FORMER_CLUSTER=COMMIT)
	@test/servers/former.sh $(FORMER_CLUSTER) $(BUILD)/former/burano
	BURANO_FORMER=$(BUILD)/former/burano go test -count=1 -timeout 20m -v -run '^TestAClusterOfTheFormerVersion' ./test/e2e

.PHONY: test-docker
test-docker: setup build ## A cluster and a host whose containerRuntime is docker, on a node image with Docker (builds it first)
	$(BUILD)/burano image build --source images --with docker --output $(BUILD)/node-image-docker.tar $(PREBUILT_FLAGS)
	@test/setup/tools.sh $(BUILD)/node-image-docker.tar $(BUILD)/bin
	BURANO_NODE_IMAGE=$(BUILD)/node-image-docker.tar go test -count=1 -timeout 40m -v -run '^TestDockerRuns' ./test/e2e

.PHONY: conformance
conformance: setup build image ## Run the conformance tests of Kubernetes on a cluster (FOCUS=REGEXP: only those; PROCS=4 at the same time; hours, with what they need built first)
	test/conformance/build.sh $(BUILD)/conformance
	BURANO_CONFORMANCE=$(BUILD)/conformance BURANO_FOCUS='$(FOCUS)' BURANO_PROCS=$(PROCS) BURANO_TIMEOUT=$(TIMEOUT) go test -count=1 -timeout 6h -v -run '^TestKubernetesConforms$$' ./test/e2e

.PHONY: conformance-storage
conformance-storage: setup build image ## Run the tests that Kubernetes has for storage drivers, with volumes of Cinder (FOCUS=REGEXP: only those; PROCS=4; an hour or more)
	test/conformance/build.sh $(BUILD)/conformance
	BURANO_CONFORMANCE=$(BUILD)/conformance BURANO_FOCUS='$(FOCUS)' BURANO_PROCS=$(PROCS) BURANO_TIMEOUT=$(TIMEOUT) go test -count=1 -timeout 6h -v -run '^TestKubernetesTestsTheStorageDriver$$' ./test/e2e

.PHONY: test-tutorial
test-tutorial: setup build image ## Run every command of docs/tutorial.md on a local cloud
	BURANO_SOAK=1 go test -count=1 -timeout 20m -v -run '^TestTheTutorialWorks$$' ./test/e2e

.PHONY: conformance-gateway
conformance-gateway: setup build image ## Run Gateway API's own conformance suite on a cluster; its report and a summary go to build/conformance-gateway (minutes)
	BURANO_GATEWAYAPI=$(BUILD)/conformance-gateway go test -count=1 -timeout 90m -v -run '^TestGatewayAPIsOwnSuitePasses$$' ./test/e2e

.PHONY: test-acme
test-acme: setup ## Have an ACME server (Pebble, built from its module) issue the certificate of a host of a gateway by HTTP-01
	go build -C test/acme/pebble -o $(BUILD)/pebble/ github.com/letsencrypt/pebble/v2/cmd/pebble github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv
	BURANO_PEBBLE=$(BUILD)/pebble go test -count=1 -v ./test/acme

.PHONY: test-nfs
test-nfs: setup ## Have the nodes' driver of Manila's shares mount one over NFS, in a guest of QEMU with Debian's kernel, from a server in user space
	@test/setup/packages.sh qemu-system-x86
	go test -C images/modules/storage -c -o $(BUILD)/storage-node.test ./storage-node
	@DRIVER=$(BUILD)/storage-node.test test/nfs/nfs.sh

.PHONY: test-clock
test-clock: setup ## Have the clock of a gateway jump an hour and a year, in a guest of QEMU with Debian's kernel (minutes)
	@test/setup/packages.sh qemu-system-x86
	go test -c -o $(BUILD)/gateway.test ./gateway
	@GATEWAY=$(BUILD)/gateway.test test/clock/clock.sh

.PHONY: bench-lang
bench-lang: ## Compare our YAQL's speed with Debian's python3-yaql (installed for that), and measure MuranoPL
	@test/setup/packages.sh python3-yaql
	go run ./test/bench/lang

.PHONY: bench-cluster
bench-cluster: setup build image ## Measure how long clusters of several sizes take to come up and to grow, beside kubeadm (some minutes)
	version=$$(go list -C test/bench/kubeadm -m -f '{{.Version}}' k8s.io/kubernetes) && go build -C test/bench/kubeadm \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$version" -o $(BUILD)/kubeadm k8s.io/kubernetes/cmd/kubeadm
	go run ./test/bench/cluster -kubeadm $(BUILD)/kubeadm

.PHONY: bench-scale
bench-scale: setup build image ## Measure one cluster with 500 simulated minions, 5,000 pods and 1,000 Services (NODES=N; some minutes)
	go build -C test/bench/kwok -o $(BUILD)/kwok sigs.k8s.io/kwok/cmd/kwok
	BURANO_SCALE=$(or $(NODES),500) BURANO_KWOK=$(BUILD)/kwok go test -count=1 -timeout 60m -v -run '^TestAClusterOfManyNodes$$' ./test/e2e

.PHONY: bench-gateway
bench-gateway: setup ## Measure 500 changes of backends, hosts and listeners of a gateway beside a poll and restart, and one of 5,000 Services (20 minutes)
	go test -count=1 -timeout 60m -v -run '^$$' -bench . -benchtime 1x ./test/bench/gateway

.PHONY: bench-servers
bench-servers: setup build image ## Measure how long one and ten servers of an application take from the call of deploy until plans have set them up
	go run ./test/bench/cluster -servers

.PHONY: bench-api
bench-api: build ## Measure how many requests per second the API answers, over SQLite; MURANO=1 measures Debian's Murano beside it
	$(if $(MURANO),test/bench/api/murano.sh,go run ./test/bench/api -burano $(BUILD)/burano)

.PHONY: bench-keepers
bench-keepers: setup ## Measure what it costs one server to look after 1,000 environments with simulated nodes, over SQLite and over PostgreSQL
	go test -count=1 -timeout 30m -run '^$$' -bench Keepers -benchtime 1x ./test/bench/keeper

.PHONY: bench-clusters
bench-clusters: setup ## Deploy 1,000 clusters of ten simulated nodes on one server, and measure what that and looking after them costs (CLUSTERS=N; PROFILE=FOLDER)
	go build $(if $(PROFILE),-tags faults) -o $(BUILD)/burano-clusters ./cmd/burano
	go test -c -o $(BUILD)/bench-clusters.test ./test/bench/clusters
	cd test/bench/clusters && BURANO_CLUSTERS=$(CLUSTERS) BURANO_PROFILE=$(abspath $(PROFILE)) BURANO_PROGRAM=$(BUILD)/burano-clusters \
		unshare --net $(BUILD)/bench-clusters.test -test.run '^$$' -test.bench Clusters -test.benchtime 1x -test.timeout 150m

.PHONY: bench-load
bench-load: setup ## Have 500 projects use one server for ten minutes while Keystone and Heat fail now and then, over SQLite and over PostgreSQL
	go test -count=1 -timeout 60m -run '^$$' -bench Projects -benchtime 1x ./test/bench/load

.PHONY: soak
soak: check image ## Kill the server at every step of deployment, scale-up and scale-down, and have each call of the cloud fail (hours)
	FUZZ_COUNT=500000 test/fuzz.sh
	BURANO_GATEWAY_CHANGES=1000 go test -count=1 -timeout 60m -v -run 'TestNothingIsDroppedWhileRoutesChange|TestAnyHistoryOfChanges' ./gateway ./gateway/haproxy
	BURANO_ETCD_AWAY=1m go test -count=1 -timeout 30m -v -run 'TestRoutesChangeOnWhenTheLeaderOfEtcdIsLost|TestTrafficGoesOnWhileEtcdIsAway' ./gateway
	BURANO_ETCD_SEQUENCES=100 go test -count=1 -timeout 60m -parallel 4 -v -run TestTheQuorum ./nodes/etcd
	BURANO_SOAK=1 go test -count=1 -timeout 20m -v -run TestManyEnvironmentsSleep ./orchestrator/upkeep
	BURANO_SOAK=1 go test -count=1 -timeout 120m -v -run SurviveTheDeathOfTheServer ./test/e2e
	BURANO_SOAK=1 go test -count=1 -timeout 120m -v -run 'TestADatabaseOutlives|TestAClusterGets|TestAClusterOfIPv6Alone|TestADualStack|TestAClusterHasARegistry|TestAGroupFollowsItsLoad|TestAServerThatWasPaused|TestClaimsComeBack|TestDatabasesComeBack|TestApplicationsOfTheCatalog|TestClaimsGetVolumesOfCinder|TestActionsChangeWhatRuns|TestActionsOnNodesKeepWhatRuns|TestGatewaysFollow|TestGatewaysShare|TestNodesAreReplaced|TestNodesMove|TestNothingIsDropped|TestPodsFollowWhatTheyUse|TestSitesServletsAndMetrics|TestTheTutorialWorks|TestThreeMastersComeBack|TestWorkloadsOfEachKind|TestADeletedEnvironment|TestAnEnvironmentSleeps|TestAttachments' ./test/e2e
	BURANO_SOAK=1 go test -count=1 -timeout 60m -v -run 'TestApplicationsOfMuranosKind|TestApplicationsThatFail|TestClaimsGetShares|TestGatewaysOfTheirOwn|TestPublicImages' ./test/e2e
	BURANO_SOAK=1 go test -count=1 -timeout 60m -v -run 'TestAMachineBesideTheCloudIsANodeWhere|TestCalico|TestMastersRunPods|TestPodsAreRoutedByBGP' ./test/e2e
	BURANO_SOAK=1 go test -count=1 -timeout 60m -v -run 'TestAClusterIsBack|TestAGuestbookRuns|TestARegistryThatIsThereByDefault|TestAUserIsDeleted|TestBackupsAndDrills|TestGlanceOfTheCatalog|TestKeystoneOfTheCatalog|TestMinionsReachRegistries|TestNodesThatFail|TestNovaOfTheCatalog|TestPlacementOfTheCatalog|TestServicesOfOpenStack|TestUsersSignIn' ./test/e2e
	BURANO_SOAK=1 go test -count=1 -timeout 120m -v -run 'TestAFreshClusterIsUp|TestAnyHistoryOfEdits|TestOrdinaryEdits' ./test/e2e
	go test -count=1 -timeout 20m -v -run TestEveryFault ./test/clients
	BURANO_FAULTS=1 go test -count=1 -timeout 120m -v -run TestChangesSurviveFaultsOfTheCloudAtEveryCall ./test/e2e
	BURANO_KILLS=2000 go test -count=1 -timeout 120m -v ./test/durability

.PHONY: test-dashboard
test-dashboard: setup ## Use the dashboard in Debian's Chromium, which is installed for that (SCENARIOS=REGEXP: only those; minutes)
	@BURANO_THOROUGH=yes BURANO_SCENARIOS='$(SCENARIOS)' test/dashboard/run.sh

.PHONY: dashboard-screenshots
dashboard-screenshots: setup ## Take a picture of every page of the dashboard, light and dark, wide and narrow, into build/screenshots
	@BURANO_SCREENSHOTS=$(BUILD)/screenshots test/dashboard/run.sh -run TestScreenshots

.PHONY: test-package
test-package: setup build ## Build package and container image twice, install, upgrade, remove and purge the one in a clean Debian, and run the other (minutes)
	@test/setup/packages.sh man-db
	@test/package/test.sh

.PHONY: test-disk
test-disk: image-disk ## Boot the disk in QEMU with BIOS and UEFI, virtio, SCSI and SATA (10 minutes without hardware virtualisation)
	@test/setup/packages.sh genisoimage ovmf qemu-system-x86
	BURANO_DISK_IMAGE=$(BUILD)/node-image.qcow2 go test -count=1 -timeout 90m -v ./test/disk

.PHONY: test-distributions
test-distributions: setup build image ## Execution plans on servers of plain Debian 12 and 13, and with Puppet; their images are made first (minutes)
	@mkdir -p $(BUILD)/distributions/puppet
	@for suite in bookworm trixie; do test -e $(BUILD)/distributions/$$suite.tar || test/setup/distribution.sh $$suite $(BUILD)/distributions/$$suite.tar; done
	@test -e $(BUILD)/distributions/puppet/trixie.tar || test/setup/distribution.sh trixie $(BUILD)/distributions/puppet/trixie.tar puppet-agent
	BURANO_DISTRIBUTIONS=$(BUILD)/distributions go test -count=1 -timeout 30m -v -run 'TestServersOfPlainDebian|TestPlansApplyManifestsOfPuppet' ./test/e2e

.PHONY: bench-dashboard
bench-dashboard: setup ## Measure how soon pages of the dashboard answer with 1,000 environments, 500 packages and 10,000 reports
	@test/dashboard/run.sh -run '^$$' -bench Pages -benchtime 1x

.PHONY: test-openstack
test-openstack: setup build ## The cloud driver's tests, and a plan on a server, on a real OpenStack made of Debian's packages (KEEP=1 keeps it up)
	@test/openstack/test.sh

.PHONY: test-openstack-disk
test-openstack-disk: setup image-disk ## The disk as servers of that OpenStack's Nova, in QEMU, and three etcd members on them
	@BURANO_DISK_IMAGE=$(BUILD)/node-image.qcow2 test/openstack/test.sh -run 'TestTheDiskBootsAsAServerOfNova|TestThreeEtcdMembersVoteOnServersOfTheDisk'

.PHONY: test-openstack-cluster
test-openstack-cluster: setup build image ## A whole cluster on that OpenStack, whose servers are containers of libvirt, and clusters whose users are deleted (KEEP=1 keeps it up)
	@SERVERS=containers STATE=$(BUILD)/openstack-cluster test/openstack/test.sh

.PHONY: test-openstack-oidc
test-openstack-oidc: setup ## Users and robots of an OpenID provider sign in to that OpenStack's Keystone (KEEP=1 keeps it up)
	@PARTS="base keystone" STATE=$(BUILD)/openstack-oidc MODULE=cmd/terraform-provider-burano/oidc test/openstack/test.sh

.PHONY: test-openstack-storage
test-openstack-storage: setup build ## What clusters ask of Cinder and Manila, on real ones: Cinder over Ceph, Manila with its dummy driver (KEEP=1 keeps them up)
	@PARTS="base keystone glance placement ceph cinder manila neutron nova" STATE=$(BUILD)/openstack-storage test/openstack/test.sh -run 'TestVolumesDoTheSameOnEveryCloud|TestSharesDoTheSameOnEveryCloud'

.PHONY: test-operator
test-operator: setup build image ## The package on a clean Debian with systemd: registered at that OpenStack, serving a cluster, upgraded meanwhile, removed
	@test/package/operator.sh

.PHONY: demo
demo: ## From nothing to an application that answers through a gateway of a real Kubernetes cluster (PREBUILT=1: compiles less)
	@test/demo/demo.sh up

.PHONY: demo-down
demo-down: ## Take down what `make demo` and `make lab` have started
	@test/demo/demo.sh down

.PHONY: clean
clean: ## Delete what was built (the caches outside this folder stay); refuses while a demonstration or a lab runs
	@test/demo/demo.sh stopped
	rm -rf $(BUILD)
