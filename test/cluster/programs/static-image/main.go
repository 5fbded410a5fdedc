// Command static-image writes a container image of statically linked programs and nothing else, in the layout of `docker save`, which
// containerd imports. The image's first program is its entry point.
//
//	static-image -output FILE -name NAME:TAG PROGRAM...
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
	"path/filepath"
	"runtime"
)

func main() {
	output := flag.String("output", "", "the file to write")
	name := flag.String("name", "", "the image's name and tag")
	flag.Parse()
	if err := run(*output, *name, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(output, name string, programs []string) error {
	if output == "" || name == "" || len(programs) == 0 {
		return errors.New("usage: static-image -output FILE -name NAME:TAG PROGRAM...")
	}
	layer, err := layer(programs)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/bin/" + filepath.Base(programs[0])}, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]map[string]any{{"Config": configName, "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	f, err := os.Create(output)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	return errors.Join(
		add(w, "layer.tar", 0o644, layer), add(w, configName, 0o644, config), add(w, "manifest.json", 0o644, manifest),
		w.Close(), f.Close())
}

// layer is the image's only one: /bin with the programs.
func layer(programs []string) ([]byte, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}); err != nil {
		return nil, err
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
	if err := w.Close(); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

func add(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
