package docs

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// situations are what people on call meet, and the section that answers each. The names are for the reader of a failure.
var situations = map[string]string{
	"claim Pending":             "how-to/troubleshoot.md#claim-is-pending",
	"ContainerCreating":         "how-to/troubleshoot.md#pod-is-stuck-in-containercreating",
	"detaching":                 "how-to/troubleshoot.md#attach-is-slow",
	"node lost":                 "how-to/troubleshoot.md#node-is-lost",
	"volume in error":           "how-to/troubleshoot.md#volume-is-in-an-error-status",
	"cloud down":                "how-to/troubleshoot.md#cloud-does-not-answer",
	"credentials expired":       "how-to/rotate-credentials.md",
	"clock wrong":               "how-to/troubleshoot.md#a-clock-is-wrong",
	"CA changed":                "how-to/rotate-credentials.md#the-ca-changed",
	"snapshot never ready":      "how-to/troubleshoot.md#snapshot-is-never-ready",
	"wrong zone":                "explanation/topology.md",
	"Multi-Attach":              "how-to/troubleshoot.md#multi-attach-error",
	"node limit":                "how-to/troubleshoot.md#what-a-node-has",
	"upgrade wrong":             "how-to/upgrade.md#go-back",
	"etcd restored":             "how-to/recover-a-cluster.md#after-a-restore-of-etcd",
	"cluster lost":              "how-to/recover-a-cluster.md#after-the-loss-of-the-cluster",
	"deleted behind Kubernetes": "how-to/troubleshoot.md#cinder-and-kubernetes-disagree",
	"orphans":                   "how-to/troubleshoot.md#orphans",
	"another cluster":           "how-to/recover-a-cluster.md#with-another-cluster-id",
	"another project":           "how-to/recover-a-cluster.md#in-another-project",
	"another cloud":             "how-to/recover-a-cluster.md#in-another-cloud",
	"upstream's plugin":         "how-to/replace-upstream.md",
	"file system read-only":     "how-to/troubleshoot.md#file-system-is-read-only",
}

// A quota that is full has no section of its own: its message is in that of a claim that is Pending.
func TestEverySituationIsTwoClicksFromTheStart(t *testing.T) {
	reached := map[string]bool{}
	first := targets(t, "README.md")
	for _, target := range first {
		page, _, _ := strings.Cut(target, "#")
		reached[target] = true
		if strings.HasSuffix(page, ".md") && !strings.HasPrefix(page, "..") {
			for _, second := range targets(t, page) {
				reached[second] = true
			}
		}
	}
	for situation, section := range situations {
		if !reached[section] {
			t.Errorf("%s: docs/%s is more than two clicks from docs/README.md", situation, section)
		}
	}
	if table := testfile.Text(t, "how-to/troubleshoot.md"); !strings.Contains(table, "\n| a quota is full | [Claim is Pending](#claim-is-pending) |\n") {
		t.Error("no way from a full quota to a claim that is Pending")
	}
}

// targets are the links of a page to other places of the documentation, as paths below docs.
func targets(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	for _, link := range inlineLink.FindAllStringSubmatch(testfile.Text(t, page), -1) {
		target := link[1]
		switch {
		case strings.Contains(target, "://"):
			continue
		case strings.HasPrefix(target, "#"):
			target = page + target
		default:
			target = path.Join(path.Dir(page), target)
		}
		all = append(all, target)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
