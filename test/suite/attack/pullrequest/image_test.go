package pullrequest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// A build can pin the base images by digest, and no program in the image gains rights when it runs. `make image` takes files from packages
// without those bits; tools/image has the test for it.
func TestTheImageCanBePinnedAndHoldsNoSetuidPrograms(t *testing.T) {
	text := testfile.Text(t, "../../../../Dockerfile")
	froms := regexp.MustCompile(`(?m)^FROM +(\S+)`).FindAllStringSubmatch(text, -1)
	if len(froms) < 2 {
		t.Fatalf("want a build stage and the image, got %v", froms)
	}
	for _, from := range froms {
		name, isArgument := strings.CutPrefix(strings.TrimSuffix(from[1], "}"), "${")
		if !isArgument || !strings.Contains(text, "\nARG "+name+"=") {
			t.Errorf("FROM %s: want an argument that a digest can be given for", from[1])
		}
	}
	_, image, _ := strings.Cut(text, froms[1][0])
	install, strip := strings.Index(image, "apt-get install"), strings.Index(image, "-perm /6000 -exec chmod a-s")
	if install < 0 || strip < install || strings.LastIndex(image, "apt-get install") > strip {
		t.Error("want set-user-ID and set-group-ID bits removed after the last package is installed")
	}
}
