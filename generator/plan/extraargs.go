package plan

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// keyOfFlag are the keys of a Distribution that set a flag of the driver.
var keyOfFlag = func() map[string]string {
	keys := map[string]string{
		"cluster": "spec.clusterID", "driver-name": "spec.driver.name", "pvc-annotations": "spec.driver.pvcAnnotations",
		"remove-startup-taint": "spec.nodeLifecycle.startupTaint", "with-topology": "spec.topology.mode",
	}
	for _, s := range v1alpha1.Settings {
		keys[s.Flag] = "spec." + s.Key
	}
	return keys
}()

// checkExtraArgs refuses flags that the driver does not have, does not take, or already gets from the bundle.
func (d *decider) checkExtraArgs(path, role string, args []string) {
	if len(args) == 0 {
		return
	}
	c := config.Config{Endpoint: "unix:///csi/csi.sock", CloudConfig: []string{"cloud.conf"}}
	flags := pflag.NewFlagSet("driver", pflag.ContinueOnError)
	c.Bind(flags)
	c.Endpoint, c.Controller, c.Node = "unix:///csi/csi.sock", role == v1alpha1.ControllerRole, role == v1alpha1.NodeRole
	c.CloudConfig = []string{"cloud.conf"}
	set := flagsOfBase(role)
	before := len(d.problems)
	for i, arg := range args {
		d.checkExtraArg(item(path, i), arg, flags, set)
	}
	if len(d.problems) > before {
		return
	}
	if err := c.Validate(); err != nil {
		d.problem("%s: %v", path, err)
	}
}

func (d *decider) checkExtraArg(path, arg string, flags *pflag.FlagSet, set map[string]bool) {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	name = strings.ReplaceAll(name, "_", "-")
	flag := flags.Lookup(name)
	switch {
	case !strings.HasPrefix(arg, "--") || !hasValue || strings.TrimSpace(arg) != arg:
		d.problem("%s: %q; want --name=value", path, arg)
	case flag == nil:
		d.problem("%s: the driver has no flag --%s%s", path, name, DidYouMean(name, flagNames(flags)))
	case flag.Deprecated != "":
		d.problem("%s: --%s has no effect: %s", path, name, flag.Deprecated)
	case strings.HasPrefix(flag.Usage, "no effect"):
		d.problem("%s: --%s has %s", path, name, flag.Usage)
	case name == "kubeconfig" || name == "master":
		d.problem("%s: --%s: the driver of a bundle asks the API server of its cluster, with the account of its pod", path, name)
	case name == "cloud-name":
		d.problem("%s: --%s: a bundle serves one cloud, whose cloud.conf has no section of a name; the driver would not start", path, name)
	case set[name] && keyOfFlag[name] != "" && flag.Value.Type() != eachText:
		d.problem("%s: use %s in place of --%s", path, keyOfFlag[name], name)
	case set[name] && flag.Value.Type() != eachText:
		d.problem("%s: --%s is set already, by the bundle or by an earlier entry", path, name)
	default:
		if err := flags.Set(name, value); err != nil {
			d.problem("%s: %v", path, err)
		}
		set[name] = flag.Value.Type() != "stringSlice" && flag.Value.Type() != eachText
	}
}

// eachText is the type of a flag that takes one more value each time: also besides that of the bundle.
const eachText = "stringArray"

func flagNames(flags *pflag.FlagSet) []string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

func flagsOfBase(role string) map[string]bool {
	set := map[string]bool{}
	for _, arg := range base().driverArgs[role] {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		set[name] = true
	}
	return set
}
