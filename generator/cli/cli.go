// Package cli is cinder-csi-generator's commands. A command takes its world, so that a test builds another; no package variable
// holds a flag. stdout carries data, stderr messages, and the exit codes are a contract with scripts.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/inspect"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/checkout"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/internal/printable"
	"github.com/cinder-csi/cinder-csi/internal/secret"
)

// The exit codes.
const (
	OK        = 0
	Failure   = 1  // a failure, findings, an internal error, a panic
	Different = 2  // only of generate and plan with --check
	Refused   = 3  // the message names what would allow it
	Usage     = 64 // wrong usage or an invalid configuration
)

// Exits are all exit codes, as the reference lists them. They are a contract with scripts.
var Exits = []command.Exit{
	{Code: OK, Meaning: "done; with `--check`: DIR is what would be written"},
	{Code: Failure, Meaning: "failure: the cloud did not answer, the credential may not list zones or volume types, a check found something wrong, an internal error"},
	{Code: Different, Meaning: "only with `--check`, of `generate` or `plan`: a difference"},
	{Code: Refused, Meaning: "refused; the message names the `--accept`, or `--force`, that allows it. No flag allows to replace files that the generator did not write"},
	{Code: Usage, Meaning: "wrong usage, or a configuration that cannot be read or used"},
}

// World is everything outside of the commands.
type World struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stderr is a terminal: progress is shown
	Columns        int  // the width of the terminal that Stdout is; 0 when Stdout is no terminal
	ErrorColumns   int  // the same for Stderr
	Env            func(string) string
	Open           func(string) (io.ReadCloser, error)
	Version        string
	data           io.Writer // Stdout as it is, for documents that other programs read
	progressTo     io.Writer // Stderr as it is, for the progress line
	// Connect logs in to a cloud.
	Connect func(context.Context, cloud.Settings, cloud.Options) (*cloud.Cloud, error)
	// Simulate logs in to a simulated cloud with fixed ids.
	Simulate func(context.Context) (*cloud.Cloud, error)
	// Kubernetes finds a cluster by kubectl's rules; it sends no request.
	Kubernetes func(cluster.Source) (*cluster.Cluster, error)
	Registry   http.RoundTripper // to registries of images; nil is the usual transport
	Now        func() time.Time  // nil is the clock
	// Retry is around the way to the cloud of commands that read an inventory; nil is inspect.Retry.
	Retry  func(http.RoundTripper) http.RoundTripper
	Verify Verifier // nil is verify.BundleAt
	// ReadOnly is for tests that read bundles and run none: the images may lack a registry without --simulated too.
	ReadOnly bool
}

// Verifier builds and checks a bundle at the directory where it is or is to be, as verify.BundleAt does.
type Verifier func(dir string, base, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) ([]verify.Object, []verify.Finding, error)

func (w *World) verifier() Verifier {
	if w.Verify != nil {
		return w.Verify
	}
	return verify.BundleAt
}

func (w *World) retry(next http.RoundTripper) http.RoundTripper {
	if w.Retry != nil {
		return w.Retry(next)
	}
	return inspect.Retry(next)
}

// Run runs one command and gives its exit code. Every failure is one message on stderr, a panic too.
func Run(ctx context.Context, w World, args []string) (code int) {
	// What people read may hold names that a cloud or a file chose.
	w.data, w.Stdout = w.Stdout, printable.To(w.Stdout)
	w.progressTo = w.Stderr
	if w.ErrorColumns > 0 {
		f := &folded{out: w.Stderr, columns: w.ErrorColumns}
		defer f.end()
		w.Stderr = f
	}
	w.Stderr = printable.To(w.Stderr)
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(w.Stderr, "Error: this is a bug in cinder-csi-generator %s, please report it: %v\n%s", w.Version, p, debug.Stack())
			code = Failure
		}
	}()
	root := newRootCommand(&w)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return OK
	}
	if message := strings.TrimRight(secret.Hide(printable.Message(err)), " \n"); message != "" {
		fmt.Fprintln(w.Stderr, "Error: "+message)
	}
	return codeOf(err)
}

// warn prints a warning. What it quotes of a file or a cloud begins no line of its own.
func (w *World) warn(line string) { fmt.Fprintln(w.Stderr, "Warning: "+printable.Line(line)) }

// exit is an error with a code of its own.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exit{Usage, fmt.Errorf(format, args...)}
}

func refused(format string, args ...any) error {
	return &exit{Refused, fmt.Errorf(format, args...)}
}

// codeOf gives errors of other packages their code.
func codeOf(err error) int {
	var own *exit
	var config *plan.ConfigError
	var decode *v1alpha1.DecodeError
	var notOurs *worktree.NotOurs
	switch {
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &config), errors.As(err, &decode):
		return Usage
	case errors.As(err, &notOurs):
		return Refused
	case errors.Is(err, worktree.ErrNotADirectory), errors.Is(err, cloud.ErrUnknownCloud), errors.Is(err, cloud.ErrBadFile), errors.Is(err, cloud.ErrMisconfigured), errors.Is(err, command.ErrUsage):
		return Usage
	}
	return Failure
}

// Commands is the tree of commands, for what describes them.
func Commands() *cobra.Command { return newRootCommand(&World{}) }

func newRootCommand(w *World) *cobra.Command {
	var shared common
	root := &cobra.Command{
		Use:           "cinder-csi-generator",
		Short:         "Inspect an OpenStack cloud and generate the manifests of a Cinder CSI driver for it",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       w.Version,
		Args:          noCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return shared.load(w, cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(w.Stderr) // stdout is for data
			_ = cmd.Help()
			return &exit{code: Usage}
		},
	}
	root.SetVersionTemplate(versionOf(w).String() + "\n")
	root.SetIn(w.Stdin)
	root.SetOut(w.Stdout)
	root.SetErr(w.Stderr)
	shared.bind(root)
	root.AddCommand(newInspectCommand(w, &shared), newPlanCommand(w, &shared), newGenerateCommand(w, &shared), newExplainCommand(w), newValidateCommand(w), newDoctorCommand(w, &shared), newImportCommand(w, &shared), newAdoptCommand(w, &shared), newSchemaCommand(w), newVersionCommand(w))
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // cobra's prints its help and calls that a success
			c.Args = func(_ *cobra.Command, args []string) error {
				if len(args) > 0 {
					return fmt.Errorf("completion %q: want one of bash, zsh, fish, powershell", args[0])
				}
				return nil
			}
			c.RunE = func(*cobra.Command, []string) error { return usage("name a shell: bash, zsh, fish or powershell") }
		}
	}
	complete(w, root)
	root.SetHelpCommand(newHelpCommand())
	asUsage(root)
	return root
}

// noCommand refuses an argument where a command belongs, and names the command that was probably meant.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // letters that may differ; cobra's default for its own messages
	hint := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], c.CommandPath(), hint)
}

// asUsage makes what cobra finds wrong with a command line exit 64.
func asUsage(c *cobra.Command) {
	hint := printable.Rows(fmt.Sprintf("\nSee '%s --help'.", c.CommandPath()))
	c.SetFlagErrorFunc(flagError)
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage("%w%w", plainArgs(cmd, args, err), hint)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		asUsage(sub)
	}
}

// largestInput is the most that a configuration or an inventory may hold, in bytes: an inventory of 10,000 volume types holds less.
const largestInput = 4 << 20

// missing is a file of the command line that does not exist.
type missing struct{ name string }

func (m missing) Error() string { return m.name + " does not exist" }

func (missing) Is(target error) bool { return target == os.ErrNotExist }

var errDirectory = errors.New("is a directory")

// readFile reads a file that is named on the command line, - for stdin. Its author may be somebody else. A link of a checkout must not show a file
// elsewhere, and a device without end must not fill the memory.
func readFile(w *World, name string) ([]byte, error) {
	in := io.NopCloser(w.Stdin)
	if name != "-" {
		err := checkout.CheckLinks(name)
		if errors.Is(err, checkout.ErrLeadsOut) {
			return nil, usage("%s: %w", name, err)
		} else if err != nil {
			return nil, err
		}
		if in, err = w.Open(name); errors.Is(err, os.ErrNotExist) {
			return nil, &exit{Usage, missing{name}}
		} else if err != nil {
			return nil, err
		}
	}
	defer in.Close()
	content, err := io.ReadAll(io.LimitReader(in, largestInput+1))
	if errors.Is(err, syscall.EISDIR) {
		return nil, &exit{Usage, fmt.Errorf("%s %w: name the file in it", name, errDirectory)}
	}
	if err == nil && len(content) > largestInput {
		return nil, usage("%s is larger than %d bytes, which no configuration or inventory is. Of an installation give import the objects with settings, or --kubeconfig", name, largestInput)
	}
	return content, err
}
