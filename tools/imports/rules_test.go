package imports_test

// mayImport says, for each package, which packages of this module it may import directly; imports of tests do not count. A key is one
// package, or a subtree with the suffix "/...": the directory and everything below it. The most exact key counts. The values are
// written in the same way. A package needs a key, a key needs a package, and an allowance needs a package that uses it.
var mayImport = rules{
	"cmd/cinder-csi-driver":    {"driver", "driver/config", "driver/guestaccess", "driver/openstack"},
	"cmd/cinder-csi-generator": {"generator/cli", "internal/cluster", "internal/cloud", "internal/memnet", "internal/openstacksim", "internal/rusage"},
	"cmd/kubectl-cinder":       {"internal/diagnosis/command", "internal/cluster", "internal/cloud", "internal/rusage"},
	"cmd/openstack-sim":        {"internal/openstacksim/..."},

	"driver":                     {"driver/...", "internal/cloud", "internal/cloudconf", "internal/panics"}, // run.go and what it calls: the only wiring
	"driver/contract":            {},
	"driver/config":              {"driver/contract", "internal/cloudconf"},
	"driver/cause":               {},
	"driver/volume":              {"driver/cause", "driver/contract"},
	"driver/inflight":            {"driver/volume", "internal/panics"},
	"driver/observe":             {"driver/cause", "driver/volume", "internal/paging"},
	"driver/idempotent":          {"driver/cause", "driver/volume", "driver/contract", "driver/inflight", "internal/panics"},
	"driver/ownership":           {"driver/cause", "driver/volume", "driver/contract", "driver/idempotent", "internal/paging", "internal/shell"},
	"driver/attach":              {"driver/cause", "driver/volume", "driver/observe", "driver/inflight", "internal/pages", "internal/shell"},
	"driver/provision":           {"driver/cause", "driver/volume", "driver/contract", "driver/observe", "driver/inflight", "driver/idempotent", "internal/paging", "internal/panics"},
	"driver/snapshot":            {"driver/cause", "driver/volume", "driver/contract", "driver/observe", "driver/inflight", "driver/idempotent", "internal/paging"},
	"driver/rpc":                 {"driver/cause", "driver/volume", "driver/operation", "internal/panics"},
	"driver/operation":           {"driver/volume"},
	"driver/telemetry":           {"driver/volume", "driver/operation"},
	"driver/identity":            {},
	"driver/controller":          {"driver/cause", "driver/volume", "driver/contract", "driver/provision", "driver/snapshot", "internal/paging"},
	"driver/node":                {"driver/cause", "driver/volume", "driver/contract", "driver/host", "driver/host/limit", "driver/host/metadata", "internal/panics"},
	"driver/host":                {"driver/cause", "driver/volume", "driver/contract", "driver/host/...", "internal/pages"},
	"driver/host/hosttest":       {"driver/volume"},
	"driver/host/singleflight":   {"internal/panics"},
	"driver/host/command":        {"driver/cause", "driver/volume"},
	"driver/host/disk":           {"driver/cause", "driver/volume", "driver/contract", "driver/host/singleflight", "internal/panics"},
	"driver/host/fs":             {"driver/cause", "driver/volume", "driver/contract", "driver/host/command", "driver/host/disk", "driver/host/singleflight"},
	"driver/host/mount":          {"driver/cause", "driver/volume", "driver/host/command", "driver/host/disk"},
	"driver/host/metadata":       {"driver/cause", "driver/volume", "driver/contract", "driver/host/disk", "driver/host/singleflight"},
	"driver/host/limit":          {"driver/volume", "driver/host/disk", "driver/host/mount"},
	"driver/openstack":           {"driver/cause", "driver/volume", "driver/contract", "driver/openstack/status", "driver/openstack/transport", "internal/cloud", "internal/paging", "internal/pages"},
	"driver/openstack/status":    {"driver/cause", "driver/volume", "internal/paging", "internal/panics"},
	"driver/openstack/transport": {"driver/volume", "internal/cloud"},
	"driver/kube":                {"driver/cause", "driver/contract", "driver/volume", "internal/kubeconfig", "internal/panics"},
	"driver/guestaccess":         {"internal/kubeconfig"},

	"internal/cloud":                   {"internal/checkout", "internal/cloudconf", "internal/documents", "internal/pages", "internal/secret", "internal/panics"},
	"internal/cloudconf":               {},
	"internal/memnet":                  {},
	"internal/openstacksim":            {},
	"internal/openstacksim/cloudfile":  {"internal/openstacksim"},
	"internal/openstacksim/dataplane":  {"internal/openstacksim"},
	"internal/checkout":                {},
	"internal/documents":               {},
	"internal/kubeconfig/...":          {},
	"internal/pages":                   {},
	"internal/paging":                  {},
	"internal/panics":                  {},
	"internal/printable":               {},
	"internal/rusage":                  {},
	"internal/secret":                  {}, // what may stand in a bundle and in an archive
	"internal/shell":                   {"driver/contract"},
	"internal/cluster":                 {"internal/cloud"},
	"internal/diagnosis":               {"driver/cause", "driver/contract", "internal/cluster", "internal/printable", "internal/shell", "internal/paging", "internal/cloud", "internal/pages"},
	"internal/diagnosis/diagnosistest": {},
	"internal/diagnosis/support":       {"internal/cluster", "internal/diagnosis", "internal/secret"},
	"internal/diagnosis/command":       {"driver/cause", "driver/contract", "internal/checkout", "internal/cluster", "internal/diagnosis", "internal/diagnosis/support", "internal/printable", "internal/shell", "internal/cloud"}, // kubectl-cinder links it

	"generator/v1alpha1":            {"driver/contract", "internal/documents", "internal/printable"},
	"generator/inspect":             {"generator/v1alpha1", "internal/cloud", "internal/paging"},
	"generator/plan":                {"generator/v1alpha1", "driver/contract", "driver/config", "internal/cloudconf", "manifests", "charts", "internal/pages", "internal/printable", "internal/secret"},
	"generator/field":               {},
	"generator/guard":               {"generator/v1alpha1", "generator/plan", "driver/contract", "internal/shell"},
	"generator/bundle":              {"generator/v1alpha1", "generator/plan", "generator/field", "internal/printable", "internal/shell", "driver/contract", "driver/config", "internal/cloudconf", "charts", "internal/pages"},
	"generator/worktree":            {"generator/v1alpha1", "internal/checkout", "internal/printable", "internal/shell"},
	"generator/doctor":              {"generator/v1alpha1", "generator/inspect", "generator/migrate", "internal/cluster", "internal/cloud", "internal/pages", "internal/shell"},
	"generator/migrate":             {"generator/v1alpha1", "generator/plan", "internal/documents", "internal/cluster", "internal/shell", "driver/contract", "driver/config", "internal/cloudconf", "internal/pages", "internal/secret"},
	"generator/verify":              {"generator/v1alpha1", "internal/documents", "driver/contract", "driver/config", "driver/guestaccess", "internal/cloudconf", "charts", "internal/printable", "internal/secret"}, // flags of each container
	"generator/verify/sidecarflags": {"charts"},
	"generator/report":              {"generator/v1alpha1", "internal/printable", "generator/doctor"},
	"generator/cli":                 {"generator/...", "driver/cause", "internal/checkout", "internal/documents", "internal/diagnosis/command", "internal/diagnosis/support", "internal/cluster", "internal/printable", "internal/secret", "internal/shell", "internal/cloud", "internal/pages"},

	"manifests": {}, "charts": {}, "docs": {}, "examples": {}, "overlays": {}, // embedded files, and tests

	"tools/image":            {},
	"tools/image/cmd/...":    {"tools/image"},
	"tools/imports":          {},
	"tools/pictures":         {"generator/report", "generator/v1alpha1"},
	"tools/pictures/cmd/...": {"tools/pictures"},
	"tools/prose":            {},
	"tools/prose/cmd/...":    {"tools/prose"},
	"tools/release":          {"tools/image", "driver/config", "generator/cli", "internal/diagnosis/command"}, // the manual pages
	"tools/release/publish":  {"tools/release"},
	"tools/release/cmd/...":  {"tools/release", "tools/release/publish"},
	"tools/versions":         {},
	"test":                   {},
	"test/bed/...":           {"test/bed/...", "tools/image"},
	// The sizes of a cluster are a table of the generator, and the judge writes them into a page beside what was measured.
	"test/judge/...":         {"test/judge/anatomy", "test/kit/page", "test/kit/testlog", "test/suite/scale/record", "generator/v1alpha1"},
	"test/kit/...":           {"test/kit/...", "driver/...", "internal/..."},
	"test/suite/mutants/...": {"test/kit/mutant", "test/suite/mutants"},
	"test/suite/...":         {}, // their tests may import anything
}

// libraryImporters says which packages may import a library directly. Packages below test/ are free.
var libraryImporters = []libraryRule{
	{[]string{"github.com/gophercloud/..."}, []string{"internal/cloud", "driver/openstack", "generator/inspect", "generator/doctor", "internal/diagnosis"}},
	{[]string{"github.com/container-storage-interface/..."}, []string{"driver/rpc", "driver/identity", "driver/controller", "driver/node"}},
	{[]string{"google.golang.org/grpc/..."}, []string{"driver/rpc", "driver/telemetry"}},
	{[]string{"sigs.k8s.io/kustomize/..."}, []string{"generator/verify"}},
	{[]string{"helm.sh/helm/..."}, []string{"generator/verify", "tools/release", "tools/release/publish"}},
	{[]string{"k8s.io/client-go/..."}, []string{"internal/cluster"}},
	{[]string{"k8s.io/mount-utils"}, []string{"driver/host", "driver/host/mount"}},
	{[]string{"github.com/google/go-containerregistry/..."}, []string{"tools/image", "tools/release/publish", "generator/doctor"}},
}

// pure packages have no I/O, not even through what they import.
var pure = []string{"driver/cause", "driver/contract", "driver/volume", "driver/provision", "driver/attach", "driver/snapshot", "driver/idempotent", "driver/ownership", "generator/plan", "generator/guard", "generator/bundle"}

// inputOutput is what pure packages never reach.
var inputOutput = []string{"net/http", "os/exec", "github.com/gophercloud/...", "google.golang.org/grpc/..."}
