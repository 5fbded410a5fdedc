package migrate

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

const evil = "x;touch PWNED;#"

func TestNamesThatKubernetesDoesNotAllowAreRefused(t *testing.T) {
	t.Parallel()
	good := cluster.Workload{Kind: "Deployment", Namespace: "storage", Name: "driver", Release: "cinder"}
	for _, change := range []func(*Adoption){
		func(a *Adoption) { a.Bundle.DriverName = evil },
		func(a *Adoption) { a.Bundle.Workloads[0].Namespace = evil },
		func(a *Adoption) { a.Bundle.Workloads[0].Name = evil },
		func(a *Adoption) { a.Found.Workloads[0].Namespace = "a.b" },
		func(a *Adoption) { a.Found.Workloads[0].Name = evil },
		func(a *Adoption) { a.Found.Workloads[0].Release = evil },
	} {
		a := Adoption{Bundle: cluster.Bundle{DriverName: cluster.UpstreamName, Workloads: []cluster.Workload{good}}, Found: &Found{Workloads: []cluster.Workload{good}}}
		if err := a.Names(); err != nil {
			t.Fatal(err)
		}
		change(&a)
		if a.Names() == nil {
			t.Errorf("want an error for %+v", a)
		}
	}
}

// Names are refused before; what is quoted as well cannot run if a check is missing.
func TestNoCommandRunsWhatANameSays(t *testing.T) {
	t.Parallel()
	w := cluster.Workload{Kind: "Deployment", Namespace: evil, Name: evil, Release: evil}
	n := w
	n.Kind = "DaemonSet"
	for _, openShift := range []bool{false, true} {
		for _, helm := range []bool{false, true} {
			a := Adoption{
				Dir: evil, Helm: helm, OpenShift: openShift, Requests: true, Bundle: cluster.Bundle{DriverName: evil, Workloads: []cluster.Workload{w, n}},
				Found: &Found{Workloads: []cluster.Workload{w, n}},
			}
			for _, part := range a.Parts() {
				for _, step := range part.Steps {
					for _, command := range step.Commands {
						if strings.HasPrefix(command, "clean=") {
							continue
						}
						// No program has a name that can be found, so only what is not quoted runs: touch, as a function.
						c := exec.CommandContext(t.Context(), "sh", "-c", "PATH=/nowhere; touch() { echo ran; }\n"+command)
						c.Dir = t.TempDir() // the commands save objects into files
						out, err := c.Output()
						if strings.Contains(string(out), "ran") {
							t.Errorf("%s: %v", command, err)
						}
					}
				}
			}
		}
	}
}

func TestWhatTheNewDriverDoesNotServeIsNamedBeforeTheSwap(t *testing.T) {
	t.Parallel()
	a := Adoption{Bundle: cluster.Bundle{DriverName: cluster.UpstreamName}, Found: &Found{Inline: []string{"Pod default/scratch"}, Refused: []string{"legacy (zone)"}}}
	var all strings.Builder
	for _, step := range a.findings() {
		all.WriteString(step.Text + "\n")
	}
	for _, want := range []string{"generic ephemeral volumes (volumes[].ephemeral) before the swap", "These have such volumes: Pod default/scratch.", "refuses new claims of these StorageClasses", "legacy (zone)."} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("want %q in:\n%s", want, all.String())
		}
	}
}
