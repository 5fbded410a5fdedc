// Command strict creates objects as the API server does, but does not store them: strict decoding, defaults and validation. For custom
// resources it uses the schemas and rules of their CustomResourceDefinitions. It needs neither etcd nor a cluster.
//
//	strict -crds DIRECTORY [-namespace NAME] FILE...
//
// It prints each object that the API server would refuse, and exits 1 then. A kind that it does not know is refused too.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/capabilities"
)

func main() {
	crds := flag.String("crds", "", "directory of CustomResourceDefinitions")
	namespace := flag.String("namespace", "", "namespace of objects that name none; without it such an object is refused, because a bundle names each namespace")
	flag.Parse()
	capabilities.Setup(true, 0) // --allow-privileged: no CSI driver runs without
	if err := run(*crds, *namespace, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "strict:", err)
		os.Exit(1)
	}
}

func run(crds, namespace string, files []string, out io.Writer) error {
	custom, err := readDefinitions(crds)
	if err != nil {
		return err
	}
	kinds, refused := map[string]int{}, 0
	for _, file := range files {
		err := documents(file, func(text []byte) error {
			object := unstructured.Unstructured{}
			if err := yaml.Unmarshal(text, &object.Object); err != nil || len(object.Object) == 0 {
				return err
			}
			kinds[object.GetKind()]++
			if err := create(text, &object, custom, namespace); err != nil {
				refused++
				fmt.Fprintf(out, "%s: %s %s/%s: %v\n", file, object.GetKind(), object.GetNamespace(), object.GetName(), err)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	total, _ := json.Marshal(kinds)
	fmt.Fprintf(out, "objects: %s\n", total)
	switch {
	case len(kinds) == 0:
		return errors.New("no objects")
	case refused != 0:
		return fmt.Errorf("the API server would refuse %d objects", refused)
	}
	return nil
}

// create runs the checks of one object: of its CustomResourceDefinition, or of the API server itself.
func create(text []byte, object *unstructured.Unstructured, custom map[string]*definition, namespace string) error {
	if of, is := custom[object.GroupVersionKind().String()]; is {
		return of.create(object, namespace)
	}
	return builtIn(text, namespace)
}

// place gives an object the namespace, if it has none and its kind needs one.
func place(object metav1.Object, namespaced bool, namespace string) error {
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	switch {
	case namespaced && object.GetNamespace() == "":
		return errors.New("a namespace is missing")
	case !namespaced && object.GetNamespace() != "":
		return errors.New("a namespace is too much: objects of this kind have none")
	}
	return nil
}

// documents calls use for each YAML document of a file.
func documents(file string, use func(text []byte) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for in := yaml.NewYAMLReader(bufio.NewReader(f)); ; {
		text, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = use(text)
		}
		if err != nil {
			return err
		}
	}
}
