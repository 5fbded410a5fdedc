// Package suite is Kubernetes' own storage tests for a CSI driver, "External.Storage", in a program of their own. The program of
// k8s.io/kubernetes/test/e2e has the tests of everything else too, and takes several times as long to build.
package suite

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/e2e/feature" // defines the labels of the tests; without it the framework refuses them
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init" // objects, events and logs of a namespace whose test has failed
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	_ "k8s.io/kubernetes/test/e2e/storage/external" // defines the tests for each --storage.testdriver
	imageutils "k8s.io/kubernetes/test/utils/image"
	_ "k8s.io/kubernetes/test/utils/ktesting/format"
)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	images := flag.Bool("images", false, "print the images of the tests' pods and exit")
	flag.Parse()
	if *images {
		for _, image := range []imageutils.ImageID{imageutils.Agnhost, imageutils.BusyBox, imageutils.Nginx, imageutils.GlibcDnsTesting} {
			fmt.Println(imageutils.GetE2EImage(image))
		}
		os.Exit(0)
	}
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "arguments that are no flags: %q\n", flag.Args())
		os.Exit(2)
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	// Where driver.yaml's classes are.
	testfiles.AddFileSource(testfiles.RootFileSource{Root: framework.TestContext.RepoRoot})
	os.Exit(m.Run())
}

func TestExternalStorage(t *testing.T) { e2e.RunE2ETests(t) }
