package bundle

import (
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/field"
)

// runbookPatches give each alert the address of its section, below the directory that the configuration names. The alerts of manifests/ name the
// section without an address.
func (p *plane) runbookPatches() []patch {
	base := p.r.RunbookBase
	if base.Value == "" || !p.alerts() {
		return nil
	}
	var list []patch
	for _, component := range alertComponents {
		name := "cinder-csi-" + component
		one := patch{file: "patches/runbook-" + component + ".yaml", target: target{kinds: []string{"PrometheusRule"}, name: name}}
		for i, page := range alertPages()[component] {
			one.ops = append(one.ops, op{
				pointer: fmt.Sprintf("/spec/groups/0/rules/%d/annotations/runbook_url", i), add: true,
				at:    field.Path{"spec", "groups", "[" + name + "]", "rules", fmt.Sprintf("[%d]", i), "annotations", "runbook_url"},
				value: part(base, "", base.Value+"/"+page),
			})
		}
		list = append(list, one)
	}
	return list
}

// alertComponents are the components alerts-NAME of manifests/.
var alertComponents = []string{"capacity", "controller", "drift-check", "node"}

// alertPages are the annotations runbook by component, in the order of the rules. The files are a part of the program.
var alertPages = sync.OnceValue(func() map[string][]string {
	pages := map[string][]string{}
	for _, component := range alertComponents {
		err := readManifest("components/alerts-"+component+"/prometheusrule.yaml", func(text []byte) error {
			var rule struct {
				Spec struct {
					Groups []struct {
						Rules []struct {
							Alert       string            `json:"alert"`
							Annotations map[string]string `json:"annotations"`
						} `json:"rules"`
					} `json:"groups"`
				} `json:"spec"`
			}
			if err := yaml.Unmarshal(text, &rule); err != nil {
				return err
			}
			for _, r := range rule.Spec.Groups[0].Rules {
				page := r.Annotations["runbook"]
				if !strings.HasPrefix(page, "docs/") {
					return fmt.Errorf("alert %s names no page", r.Alert)
				}
				pages[component] = append(pages[component], page)
			}
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
	return pages
})
