package rights

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// object is what is read of a Role, a ClusterRole or a binding.
type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []struct{ APIGroups, Resources, Verbs, NonResourceURLs []string }
	RoleRef  struct{ Kind, Name string }
	Subjects []struct{ Kind, Name, Namespace string }
}

// Granted are the rights in the roles of a List in JSON, as `kubectl get -o json` prints it, for each account that a role is bound to. A role that
// nothing is bound to is an error: it would be there for nobody.
func Granted(list []byte) ([]Grant, error) {
	var decoded struct{ Items []object }
	if err := json.Unmarshal(list, &decoded); err != nil {
		return nil, err
	}
	accounts := map[string][]string{}
	for _, o := range decoded.Items {
		key := o.RoleRef.Kind + "/" + o.namespaceOf(o.RoleRef.Kind) + "/" + o.RoleRef.Name
		for _, s := range o.Subjects {
			accounts[key] = append(accounts[key], s.Namespace+"/"+s.Name)
		}
	}
	var all []Grant
	for _, o := range decoded.Items {
		if o.Kind != "Role" && o.Kind != "ClusterRole" {
			continue
		}
		bound := accounts[o.Kind+"/"+o.namespaceOf(o.Kind)+"/"+o.Metadata.Name]
		if len(bound) == 0 {
			return nil, fmt.Errorf("%s %s is bound to nobody", o.Kind, o.Metadata.Name)
		}
		for _, account := range bound {
			for _, right := range o.rights() {
				all = append(all, Grant{Right: right, Role: o.Metadata.Name, Account: account})
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no role grants anything")
	}
	slices.SortFunc(all, func(a, b Grant) int { return strings.Compare(a.Account+" "+a.String(), b.Account+" "+b.String()) })
	return slices.Compact(all), nil
}

// namespaceOf is the namespace by which a role of the kind is found: a ClusterRole has none.
func (o object) namespaceOf(kind string) string {
	if kind == "ClusterRole" {
		return ""
	}
	return o.Metadata.Namespace
}

func (o object) rights() []Right {
	var all []Right
	for _, rule := range o.Rules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					all = append(all, Right{verb, group, resource})
				}
			}
			for _, url := range rule.NonResourceURLs {
				all = append(all, Right{verb, "", url})
			}
		}
	}
	return all
}
