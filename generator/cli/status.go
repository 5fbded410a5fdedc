package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/support"
)

// results are those of a drift check by its exit code; any other code is a failure.
var results = map[int]string{OK: "in-sync", Different: "drift"}

// The bounds of a status. A ConfigMap holds 1 MiB in all, and people read the first lines.
const (
	statusLines   = 100
	statusLine    = 500     // bytes of one line
	statusError   = 4 << 10 // bytes of the error
	statusObjects = 1000
)

// statusTime is how long the write may take. A run that was interrupted writes too, within the grace period of its pod (30 s).
const statusTime = 20 * time.Second

const statusManager = "cinder-csi-drift-check"

// driftStatus is what one drift check found, for the ConfigMap that GitOps and people read.
type driftStatus struct {
	plan    []byte // as the check read it
	decoded *v1alpha1.Plan
	changes []v1alpha1.Change
}

// checkAndTell is check, and it writes the result into a ConfigMap of the cluster, if one is named. A write that fails is a warning: the exit
// code says what the check found.
func (d *decision) checkAndTell(ctx context.Context, w *World, file, form, configMap string) error {
	var s driftStatus
	err := d.check(ctx, w, file, form, &s)
	if configMap == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTime)
	defer cancel()
	if failure := s.write(ctx, w, configMap, err); failure != nil {
		w.warn(fmt.Sprintf("--status-configmap %s: the result was not written, and the exit code is that of the check: %v", configMap, failure))
	}
	return err
}

// checkStatusFlag finds what is wrong with the name of the ConfigMap.
func checkStatusFlag(configMap, saved string) error {
	namespace, name, apart := strings.Cut(configMap, "/")
	switch {
	case configMap == "":
		return nil
	case saved == "":
		return usage("--status-configmap is for --check: there is no result without one")
	case apart && namespace == "", apart && (name == "" || strings.Contains(name, "/")):
		return usage("--status-configmap %q: want NAMESPACE/NAME, or NAME in the namespace of the pod or of the kubeconfig", configMap)
	}
	return nil
}

func (s *driftStatus) write(ctx context.Context, w *World, configMap string, result error) error {
	data, err := s.data(w, result)
	if err != nil {
		return err
	}
	c, err := w.Kubernetes(cluster.Source{Pod: true})
	if err != nil {
		return err
	}
	namespace, name, apart := strings.Cut(configMap, "/")
	if !apart {
		namespace, name = c.Namespace(), configMap
	}
	return c.ApplyData(ctx, namespace, name, statusManager, data)
}

// data are the entries of the ConfigMap. The differences and the error name what a cloud or a configuration chose, such as the address of a
// proxy. So the redactor of support bundles reads them.
func (s *driftStatus) data(w *World, result error) (map[string]string, error) {
	code := OK
	if result != nil {
		code = codeOf(result)
	}
	data := map[string]string{
		"result": cmp.Or(results[code], "failed"), "exitCode": strconv.Itoa(code), "checkedAt": w.now().UTC().Format(time.RFC3339), "generator": w.Version,
	}
	redactor := support.NewRedactor()
	if code != OK && code != Different {
		data["error"] = shorten(redactor.Text(result.Error()), statusError)
	}
	if len(s.changes) > 0 {
		data["differences"] = differences(s.changes, redactor)
	}
	if s.plan != nil {
		data["planChecksum"] = fmt.Sprintf("sha256:%x", sha256.Sum256(s.plan))
	}
	if s.decoded == nil {
		return data, nil
	}
	data["bundleGenerator"] = s.decoded.Generator
	r, err := plan.FromDocument(*s.decoded)
	if err != nil {
		return nil, err
	}
	objects, err := bundle.BesideTheController(r, verify.Chart)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(objects[:min(len(objects), statusObjects)])
	data["relatedObjects"] = string(text)
	return data, err
}

func differences(changes []v1alpha1.Change, redactor *support.Redactor) string {
	var b strings.Builder
	for _, c := range changes[:min(len(changes), statusLines)] {
		b.WriteString(shorten(strings.ReplaceAll(redactor.Text(c.Message), "\n", " "), statusLine) + "\n")
	}
	if more := len(changes) - statusLines; more > 0 {
		fmt.Fprintf(&b, "and %d more; the log of the pod has all of them\n", more)
	}
	return b.String()
}

// shorten cuts a text to so many bytes, between two letters.
func shorten(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	const more = " ..."
	return strings.ToValidUTF8(text[:bytes-len(more)], "") + more
}
