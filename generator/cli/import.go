package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/migrate"
)

func newImportCommand(w *World) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE|DIR...",
		Short: "Propose a configuration from cloud.conf, chart values, manifests, or objects of OpenShift and HyperShift",
		Long: `Reads the configuration of another installation and prints a Distribution for --config. Each FILE is a cloud.conf, the values of the chart
openstack-cinder-csi, or YAML with Kubernetes objects (- is stdin). It reads upstream's workloads and classes, PersistentVolumes, and objects
of OpenShift and HyperShift. Below each DIR, such as that of "oc adm must-gather", it reads every file that ends in .yaml, .yml, .json or .conf.
Messages say key by key what became of it, or why it was left out. An unknown key of cloud.conf is an error. So are two files with
different values for one key.

Credentials are never printed. Of a Secret only the names are read. They go into a Secret, and a message has the command.`,
		Example: "  helm get values cinder-csi --namespace kube-system > values.yaml\n  cinder-csi-generator import values.yaml > distribution.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			distribution, notes, err := migrate.Import(filesOf(w, args))
			if errors.Is(err, migrate.ErrFile) {
				return &exit{Usage, err}
			}
			if err != nil {
				return err
			}
			for _, n := range notes {
				fmt.Fprintln(w.Stderr, n)
			}
			return print(w, asYAML, distribution, forPeople{})
		},
	}
}

// importable are the names of files that import reads in a directory.
var importable = []string{".yaml", ".yml", ".json", ".conf"}

// filesOf reads the arguments, and the files below those that are directories, one at a time.
func filesOf(w *World, args []string) iter.Seq2[migrate.File, error] {
	return func(yield func(migrate.File, error) bool) {
		for _, arg := range args {
			if info, err := os.Stat(arg); arg == "-" || err != nil || !info.IsDir() {
				content, err := readFile(w, arg)
				if !yield(migrate.File{Name: arg, Content: content}, err) {
					return
				}
				continue
			}
			if !filesBelow(w, arg, yield) {
				return
			}
		}
	}
}

// filesBelow says on stderr which files it does not look at. Its result is whether the caller wants more.
func filesBelow(w *World, dir string, yield func(migrate.File, error) bool) bool {
	others, given, more := 0, 0, true
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular() || !slices.Contains(importable, filepath.Ext(path)):
			others++
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > largestInput {
			fmt.Fprintf(w.Stderr, "%s: the file: left out: it is larger than %d bytes; copy the objects with settings into a smaller file\n", path, largestInput)
			return err
		}
		given++
		content, err := readFile(w, path)
		if more = yield(migrate.File{Name: path, Directory: dir, Content: content}, err); !more {
			return fs.SkipAll
		}
		return nil
	})
	if others > 0 {
		fmt.Fprintf(w.Stderr, "%s: %d other files: left out: import reads files that end in .yaml, .yml, .json or .conf\n", dir, others)
	}
	if err == nil && given == 0 {
		err = usage("%s has no file that import reads", dir)
	}
	if err != nil {
		return yield(migrate.File{}, err)
	}
	return more
}
