// Command static-image writes a container image of statically linked programs and nothing else, in the layout of `docker save`, which
// containerd imports. The image's first program is its entry point. With -busybox it also has a shell and the other tools of busybox, and /tmp.
// A program that is not static needs its libraries as -file.
//
//	static-image -output FILE -name NAME:TAG [-busybox FILE] [-link /NAME=TARGET]... [-file FILE]... PROGRAM...
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// image is what the command line describes.
type image struct {
	output, name string
	programs     []string
	busybox      string
	links        []link
	files        []string // each has the same path in the image
}

// link is a symbolic link in the image.
type link struct{ name, target string }

func main() {
	var i image
	flag.StringVar(&i.output, "output", "", "the file to write")
	flag.StringVar(&i.name, "name", "", "the image's name and tag")
	flag.StringVar(&i.busybox, "busybox", "", "a static busybox: the image gets it, and a link for each of its tools")
	flag.Func("link", "a symbolic link, /NAME=TARGET; may be repeated", func(s string) error {
		name, target, found := strings.Cut(s, "=")
		if !found || !strings.HasPrefix(name, "/") {
			return errors.New("want /NAME=TARGET")
		}
		i.links = append(i.links, link{strings.TrimPrefix(name, "/"), target})
		return nil
	})
	flag.Func("file", "a file of this machine, which the image has at the same path; may be repeated", func(s string) error {
		i.files = append(i.files, s)
		return nil
	})
	flag.Parse()
	i.programs = flag.Args()
	if err := i.write(); err != nil {
		log.Fatal(err)
	}
}

func (i image) write() error {
	if i.output == "" || i.name == "" || len(i.programs) == 0 {
		return errors.New("usage: static-image -output FILE -name NAME:TAG [-busybox FILE] [-link /NAME=TARGET]... [-file FILE]... PROGRAM...")
	}
	layer, err := i.layer()
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/bin/" + filepath.Base(i.programs[0])}, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]map[string]any{{"Config": configName, "RepoTags": []string{i.name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	f, err := os.Create(i.output)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	return errors.Join(
		add(w, "layer.tar", 0o644, layer), add(w, configName, 0o644, config), add(w, "manifest.json", 0o644, manifest),
		w.Close(), f.Close())
}

// layer is the image's only one: /bin with the programs, and what busybox and links add.
func (i image) layer() ([]byte, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}); err != nil {
		return nil, err
	}
	programs, links := i.programs, i.links
	if i.busybox != "" {
		tools, err := toolsOf(i.busybox, programs)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(programs, i.busybox) {
			programs = append(programs, i.busybox)
		}
		links = append(links, tools...)
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
			return nil, err
		}
	}
	for _, program := range programs {
		binary, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		if err := add(w, "bin/"+filepath.Base(program), 0o755, binary); err != nil {
			return nil, err
		}
	}
	for _, file := range i.files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := add(w, strings.TrimPrefix(file, "/"), 0o755, content); err != nil {
			return nil, err
		}
	}
	for _, l := range links {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: l.name, Linkname: l.target, Mode: 0o777}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// toolsOf are links to busybox under the name of each tool that it has, unless a program of the image has that name.
func toolsOf(busybox string, programs []string) ([]link, error) {
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list: %w", busybox, err)
	}
	taken := map[string]bool{filepath.Base(busybox): true}
	for _, program := range programs {
		taken[filepath.Base(program)] = true
	}
	var links []link
	for name := range strings.FieldsSeq(string(list)) {
		if !taken[name] {
			links = append(links, link{"bin/" + name, filepath.Base(busybox)})
		}
	}
	return links, nil
}

func add(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
