package docs

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// inlineLink is a link or an image in Markdown: [text](target).
var inlineLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// hosts are the sites that pages link to. A page of another site needs an entry here: it should be the project's own documentation.
var hosts = []string{
	"kubernetes.io", "kubernetes-csi.github.io", "github.com", "docs.openstack.org", "helm.sh", "keepachangelog.com", "semver.org",
	"prometheus.io", "prometheus-operator.dev", "grafana.com", "opentelemetry.io", "docs.redhat.com", "hypershift.pages.dev",
	"access.redhat.com", "man7.org", "slsa.dev", "docs.sigstore.dev", "spdx.dev", "in-toto.io", "fluxcd.io", "argo-cd.readthedocs.io", "docs.renovatebot.com",
}

// githubOwners are the owners of the repositories on github.com that pages link to.
var githubOwners = []string{
	"kubernetes", "kubernetes-csi", "kubernetes-sigs", "container-storage-interface", "openstack", "openshift", "prometheus-operator", "cinder-csi",
	"topolvm", "longhorn", // the page that compares drivers
}

// pages are all Markdown files that people read: those of docs and the README files.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains([]string{"testdata", "bin", "dist", "overlays"}, entry.Name()) || strings.HasPrefix(entry.Name(), ".") && name != ".."):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".md"):
			all = append(all, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// linksOf are the targets of the links of a page, without those in code.
func linksOf(text string) []string {
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
	text = regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "code")
	var targets []string
	for _, found := range inlineLink.FindAllStringSubmatch(text, -1) {
		targets = append(targets, found[1])
	}
	return targets
}

// anchorsOf are the anchors that GitHub gives the headings of a page.
func anchorsOf(text string) []string {
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
	var anchors []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(text, -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading[1], "$1")
		title = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		anchors = append(anchors, strings.ReplaceAll(title, " ", "-"))
	}
	for _, anchor := range regexp.MustCompile(`<a (?:id|name)="([^"]+)">`).FindAllStringSubmatch(text, -1) {
		anchors = append(anchors, anchor[1])
	}
	return anchors
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, target := range linksOf(testfile.Text(t, page)) {
			if strings.Contains(target, "://") {
				continue // TestOutboundLinksAreOfKnownSites
			}
			path, anchor, _ := strings.Cut(target, "#")
			file := page
			if path != "" {
				file = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", page, target, err)
				continue
			}
			if anchor != "" && !slices.Contains(anchorsOf(testfile.Text(t, file)), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", page, target, file)
			}
		}
	}
}

func TestOutboundLinksAreOfKnownSites(t *testing.T) {
	outbound := map[string]int{}
	for _, page := range pages(t) {
		for _, target := range linksOf(testfile.Text(t, page)) {
			if !strings.Contains(target, "://") {
				continue
			}
			if problem := outboundProblem(target); problem != "" {
				t.Errorf("%s links to %s: %s", page, target, problem)
			}
			link, _ := url.Parse(target)
			outbound[link.Host]++
		}
	}
	// A reader of these pages needs the documentation of the parts around the driver.
	for _, host := range []string{"kubernetes.io", "kubernetes-csi.github.io", "docs.openstack.org", "github.com"} {
		if outbound[host] == 0 {
			t.Errorf("no page links to %s", host)
		}
	}
}

// outboundProblem says what is wrong with the form of a link to another site; empty if nothing is. It does not open the link.
func outboundProblem(target string) string {
	link, err := url.Parse(target)
	switch {
	case err != nil:
		return err.Error()
	case link.Scheme != "https":
		return "links use https"
	case link.User != nil || link.RawQuery != "" || link.Port() != "":
		return "links have no user, port or query"
	case !slices.Contains(hosts, link.Host):
		return "the site is not in the list of this test"
	}
	if owner, _, _ := strings.Cut(strings.TrimPrefix(link.Path, "/"), "/"); link.Host == "github.com" && !slices.Contains(githubOwners, owner) {
		return "the owner of the repository is not in the list of this test"
	}
	return ""
}

func TestAnOutboundLinkOfAnotherFormIsRefused(t *testing.T) {
	for _, target := range []string{
		"http://kubernetes.io/docs/", "https://kubernetes.io.example.com/", "https://kubernetes.io:8443/", "https://user@kubernetes.io/",
		"https://kubernetes.io/search?q=x", "https://github.com/somebody/fork", "https://[", "ftp://kubernetes.io/",
	} {
		if outboundProblem(target) == "" {
			t.Errorf("%s: want a problem, got none", target)
		}
	}
	if problem := outboundProblem("https://kubernetes.io/docs/concepts/storage/#anchor"); problem != "" {
		t.Errorf("want no problem, got %s", problem)
	}
}

func TestEveryPageIsInTheIndex(t *testing.T) {
	var linked []string
	for _, target := range linksOf(testfile.Text(t, "README.md")) {
		path, _, _ := strings.Cut(target, "#")
		linked = append(linked, filepath.Clean(path))
	}
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "../docs/") {
			page = strings.TrimPrefix(page, "../docs/")
			if page != "README.md" && filepath.Dir(page) != "explanation/decisions" && !slices.Contains(linked, page) {
				t.Errorf("docs/README.md does not link to %s", page)
			}
		}
	}
}
