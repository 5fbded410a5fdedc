package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

var versions = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

const chartDir = "charts/cinder-csi"

// checkVersion returns the version of the release. The files of a release must install the images of that release. So it refuses
// a version that the chart or the changelog do not have, and names each of them.
func checkVersion(root, version string) (string, error) {
	var chart struct{ Version, AppVersion string }
	if err := readYAML(filepath.Join(root, chartDir, "Chart.yaml"), &chart); err != nil {
		return "", err
	}
	if version == "" {
		version = chart.AppVersion
	}
	if !versions.MatchString(version) {
		return "", fmt.Errorf("version %q: want vMAJOR.MINOR.PATCH, for example v0.1.0", version)
	}
	var wrong []error
	other := func(where, got, want string) {
		if got != want {
			wrong = append(wrong, fmt.Errorf("%s has %q and the release needs %q", where, got, want))
		}
	}
	other("appVersion in "+chartDir+"/Chart.yaml", chart.AppVersion, version)
	other("version in "+chartDir+"/Chart.yaml", chart.Version, strings.TrimPrefix(version, "v"))
	if err := checkValues(root, version, other); err != nil {
		return "", err
	}
	changes, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	if heading := "## [" + strings.TrimPrefix(version, "v") + "]"; !bytes.Contains(changes, []byte("\n"+heading)) {
		wrong = append(wrong, fmt.Errorf("CHANGELOG.md has no section %q", heading))
	}
	if len(wrong) > 0 {
		return "", fmt.Errorf("release %s: %w\nRELEASE.md says how to change a version", version, errors.Join(wrong...))
	}
	return version, nil
}

// checkValues compares the version that the values of the chart are for, in the values and in their schema. It also compares the tags of the
// project's images.
func checkValues(root, version string, other func(where, got, want string)) error {
	var values struct {
		ChartVersion string
		Images       map[string]any
	}
	var schema struct {
		Properties struct{ ChartVersion struct{ Const string } }
	}
	valuesFile, schemaFile := chartDir+"/values.yaml", chartDir+"/values.schema.json"
	if err := errors.Join(readYAML(filepath.Join(root, valuesFile), &values), readYAML(filepath.Join(root, schemaFile), &schema)); err != nil {
		return err
	}
	number := strings.TrimPrefix(version, "v")
	other("chartVersion in "+valuesFile, values.ChartVersion, number)
	other("chartVersion in "+schemaFile, schema.Properties.ChartVersion.Const, number)
	for _, role := range slices.Sorted(maps.Keys(values.Images)) {
		ofRole, _ := values.Images[role].(map[string]any) // a policy for all roles is a text
		for _, name := range slices.Sorted(maps.Keys(ofRole)) {
			one, _ := ofRole[name].(map[string]any)
			if repository, _ := one["repository"].(string); strings.HasPrefix(repository, "cinder-csi/cinder-csi-") {
				tag, _ := one["tag"].(string)
				other("images."+role+"."+name+" in "+valuesFile, tag, version)
			}
		}
	}
	return nil
}

func readYAML(name string, into any) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// source returns the commit of a checkout and its time. It refuses uncommitted changes, because the provenance names the commit.
func source(ctx context.Context, root string) (commit string, at time.Time, err error) {
	changed, err := git(ctx, root, "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return "", time.Time{}, err
	}
	if changed != "" {
		return "", time.Time{}, fmt.Errorf("these files differ from the commit; commit or remove them, then build the release again:\n%s", changed)
	}
	line, err := git(ctx, root, "log", "-1", "--format=%H %ct")
	if err != nil {
		return "", time.Time{}, err
	}
	commit, seconds, _ := strings.Cut(line, " ")
	at, err = epoch(seconds, time.Time{})
	return commit, at, err
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := run(ctx, dir, nil, "git", args...)
	return strings.TrimRight(string(out), "\n"), err
}

// run runs a program in a directory with additions to the environment, and returns its standard output.
func run(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// epoch reads SOURCE_DATE_EPOCH (reproducible-builds.org), in seconds.
func epoch(text string, without time.Time) (time.Time, error) {
	if text == "" {
		return without, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
