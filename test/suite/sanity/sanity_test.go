// Package sanity runs the sanity suite of csi-test against the driver program: on the simulated cloud, or with -bed on a real one.
// With -guest, test/suite/guests has started the driver in a guest.
// `make test-full SUITE=sanity` builds the programs and runs it.
package sanity

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

var (
	split  = flag.Bool("split", false, "run the controller service and the node service in separate processes")
	bed    = flag.String("bed", "", "`directory` of a running OpenStack; the simulation if empty")
	access = flag.String("access", "mount", "use volumes as `mount` or block")
	conf   = flag.String("cloud-config", "", "cloud.conf `file` of a separate project on that OpenStack, which must be empty at the end; the file of the bed if empty")
	server = flag.String("server", "node-az1", "`name` of the server of that project on which the driver runs")
	guest  = flag.String("guest", "", "`directory` with the sockets of a driver whose node role is in a guest: controller, node, and shell for its directories")
	theirs = flag.String("upstream", "", "the `program` of upstream's plugin, to run in place of the driver on a real OpenStack; what fails is a result")
)

// Ginkgo runs one suite in a process, so the variants are flags and not subtests.
func TestTheDriverIsSane(t *testing.T) {
	conditions := []string{"always"}
	var c cloud
	switch {
	case *guest != "":
		conditions = append(conditions, "guest")
	case *bed == "":
		c = startSimulation(t)
		if !asRoot() {
			conditions = append(conditions, "not-root")
		}
	default:
		c = realCloud(t, *bed)
		if c.most == 0 {
			conditions = append(conditions, "unlimited")
		}
	}
	listed, err := readSkips("skips.txt", conditions)
	if err != nil {
		t.Fatal(err)
	}
	config := configure(t, c)
	context := sanity.GinkgoTest(&config)
	defer context.Finalize()
	var seen ginkgo.Report
	ginkgo.ReportAfterSuite("outcome", func(r ginkgo.Report) { seen = r })
	suite, reporter := ginkgo.GinkgoConfiguration()
	if *bed == "" && *guest == "" {
		suite.SkipStrings = filters(listed)
	}
	if deadline, ok := t.Deadline(); ok {
		suite.Timeout = time.Until(deadline) * 9 / 10 // so that the programs are stopped before go test gives up
	}
	reporter.Succinct, reporter.NoColor = true, true
	gomega.RegisterFailHandler(ginkgo.Fail)
	var runner ginkgo.GinkgoTestingT = t
	if *theirs != "" {
		runner = noVerdict{}
	}
	ginkgo.RunSpecs(runner, "CSI sanity", suite, reporter)

	o := judge(seen.SpecReports)
	if *theirs != "" {
		reportUpstream(t, o)
		return
	}
	if *bed == "" || *conf != "" { // other users share the project of the bed
		nothingLeft(t, context.ControllerConn)
	}
	for _, difference := range compare(listed, o.skipped) {
		t.Error(difference)
	}
	if o.passed == 0 {
		t.Error("no spec passed")
	}
	o.print()
}

// configure starts the driver and gives the suite its address.
func configure(t *testing.T, c cloud) sanity.TestConfig {
	t.Helper()
	dir := t.TempDir()
	config := sanity.NewTestConfig()
	config.TargetPath, config.StagingPath = filepath.Join(dir, "target"), filepath.Join(dir, "staging")
	config.IdempotentCount = 10
	config.TestVolumeSize = 1 << 30 // the bed's disk is small
	config.TestVolumeAccessType = *access
	config.TestVolumeMutableParameters = map[string]string{"type": "multiattach", "metadata.purpose": "sanity"}
	config.TestSnapshotParameters = map[string]string{"type": "snapshot", "force-create": "true"}
	config.TestNodeVolumeAttachLimit = c.most > 0
	if *guest != "" {
		inGuest(t, &config, *guest)
		return config
	}
	if *theirs != "" {
		config.Address = startUpstream(t, dir, *theirs)
		return config
	}
	controller := append([]string{"--cluster=sanity", "--strict", "--with-capacity", "--v=4"}, c.controller...)
	if !*split {
		config.Address = startDriver(t, dir, "driver", append(controller, c.node...)...)
		return config
	}
	config.ControllerAddress = startDriver(t, dir, "controller", append(controller, "--provide-node-service=false")...)
	config.Address = startDriver(t, dir, "node", append(c.node, "--provide-controller-service=false", "--strict", "--v=4")...)
	return config
}

func TestMain(m *testing.M) {
	flag.Parse()
	if *access != "mount" && *access != "block" {
		fmt.Fprintf(os.Stderr, "-access is %q; it can be mount or block\n", *access)
		os.Exit(2)
	}
	if *guest != "" && (*bed != "" || *conf != "" || *theirs != "" || *split) {
		fmt.Fprintln(os.Stderr, "-guest names a driver that runs, so it goes without -bed, -cloud-config, -upstream and -split")
		os.Exit(2)
	}
	os.Exit(m.Run())
}
