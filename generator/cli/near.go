package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// Words that people have for a value of a flag, and what to write. The nearest value by its letters may be the wrong one.
const (
	openShift       = "OpenShift is standalone, or hypershift if its control plane is hosted"
	otherKubernetes = "any other Kubernetes is vanilla"
	eachByName      = "accept each change by its own name"
	plainManifests  = "write kustomize; kubectl kustomize DIR then prints the manifests"
)

var meant = map[string]map[string]string{
	"--target": {
		"openshift": openShift, "ocp": openShift, "okd": openShift, "hosted": openShift,
		"kubernetes": otherKubernetes, "k8s": otherKubernetes, "rke2": otherKubernetes, "k3s": otherKubernetes, "upstream": otherKubernetes,
	},
	"--accept": {"all": eachByName, "any": eachByName, "true": eachByName},
	"--format": {"yaml": plainManifests, "manifests": plainManifests, "kubectl": plainManifests, "overlay": "write kustomize", "chart": "write helm", "values": "write helm"},
}

// meaning ends the message about a value that a flag does not take.
func meaning(flag, value string, allowed []string) string {
	if what := meant[flag][strings.ToLower(value)]; what != "" {
		return "; " + what
	}
	return plan.DidYouMean(value, allowed)
}

// flagError says what is wrong with a flag in words that are none of a library's, and which flag was probably meant.
func flagError(c *cobra.Command, err error) error {
	hint := printable.Rows(fmt.Sprintf("\nSee '%s --help'.", c.CommandPath()))
	invalid := (*pflag.InvalidValueError)(nil)
	unknown := (*pflag.NotExistError)(nil)
	switch {
	case errors.As(err, &invalid):
		return usage("%s%w", badValue(invalid.GetFlag(), invalid.GetValue(), err), hint)
	case errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1:
		return unknownFlag(c, unknown.GetSpecifiedName(), hint)
	}
	return usage("%w%w", err, hint)
}

// badValue says which values a flag takes.
func badValue(f *pflag.Flag, value string, err error) string {
	switch f.Value.Type() {
	case "bool":
		return fmt.Sprintf("--%s=%s: want true or false, or --%s alone, which is true", f.Name, value, f.Name)
	case "duration":
		return fmt.Sprintf("--%s %s: want a number with a unit, such as 30s or 2m", f.Name, value)
	}
	return err.Error()
}

// unknownFlag says which flag was probably meant, or what to write in its place. A flag of a command is unknown where the command itself is misspelt.
func unknownFlag(c *cobra.Command, name string, hint error) error {
	if words := c.Flags().Args(); c.Parent() == nil && len(words) > 0 {
		if err := noCommand(c, words[:1]); err != nil {
			return usage("%w%w", err, hint)
		}
	}
	instead := ""
	switch others := commandsWith(c.Root(), name); {
	case name == "output-dir" && slices.Contains([]string{"validate", "adopt", "explain"}, c.Name()):
		instead = fmt.Sprintf("; %s takes the directory as an argument: %s", c.Name(), c.Use)
	case len(others) > 0:
		instead = "; it is a flag of " + strings.Join(others, ", ")
	default:
		var flags []string
		c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
		instead = plan.DidYouMean("--"+name, flags)
	}
	return usage("unknown flag: --%s%s%w", name, instead, hint)
}

func commandsWith(root *cobra.Command, flag string) []string {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Flags().Lookup(flag) != nil {
			names = append(names, c.Name())
		}
	}
	return names
}

// plainArgs is what cobra finds wrong with the arguments of a command, in words that say what belongs there.
func plainArgs(c *cobra.Command, args []string, err error) error {
	switch message := err.Error(); {
	case strings.HasPrefix(message, "accepts "):
		return fmt.Errorf("%s: want %s, got %s", c.CommandPath(), strings.TrimPrefix(c.Use, c.Name()+" "), counted(len(args)))
	case strings.HasPrefix(message, "unknown command ") && len(c.Commands()) == 0:
		return fmt.Errorf("%s takes no argument, got %s%s", c.CommandPath(), strings.Join(args, " "), valueApart(args))
	}
	return err
}

func counted(n int) string {
	if n == 0 {
		return "nothing"
	}
	return strconv.Itoa(n) + " arguments"
}

// valueApart explains the word after a flag that takes no value of its own: --simulated yes.
func valueApart(args []string) string {
	if len(args) == 0 || !slices.Contains([]string{"true", "false", "yes", "no"}, args[0]) {
		return ""
	}
	return "; write the value of a flag such as --simulated as --simulated=true, or leave it out"
}
