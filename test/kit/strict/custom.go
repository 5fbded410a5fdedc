package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// definition is one version of a CustomResourceDefinition, as the API server uses it.
type definition struct {
	namespaced bool
	schema     *structural.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// readDefinitions reads the CustomResourceDefinitions of a directory, by the group, version and kind of their objects.
func readDefinitions(dir string) (map[string]*definition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	all := map[string]*definition{}
	for _, file := range files {
		err := documents(file, func(text []byte) error { return addDefinition(all, text) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return all, nil
}

func addDefinition(all map[string]*definition, text []byte) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil || crd.Kind == "" {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
			return err
		}
		shape, err := structural.NewStructural(&internal)
		if err != nil {
			return err
		}
		validator, _, err := validation.NewSchemaValidator(&internal)
		if err != nil {
			return err
		}
		kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		all[kind.String()] = &definition{
			namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, schema: shape, validator: validator,
			rules: cel.NewValidator(shape, true, celconfig.PerCallLimit),
		}
	}
	return nil
}

// create checks a custom resource as the API server does with fieldValidation=Strict.
func (d *definition) create(object *unstructured.Unstructured, namespace string) error {
	if err := place(object, d.namespaced, namespace); err != nil {
		return err
	}
	unknown := pruning.PruneWithOptions(object.Object, d.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) != 0 {
		return fmt.Errorf("unknown fields: %s", strings.Join(unknown, ", "))
	}
	defaulting.Default(object.Object, d.schema)
	problems := validation.ValidateCustomResource(nil, object.UnstructuredContent(), d.validator)
	if d.rules != nil {
		more, _ := d.rules.Validate(context.Background(), field.NewPath(""), d.schema, object.Object, nil, celconfig.RuntimeCELCostBudget)
		problems = append(problems, more...)
	}
	return problems.ToAggregate()
}
