package bundle

import (
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/pages"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// credentials gives the command that makes the Secret, or that shows whether its owner has made it.
func (w *text) credentials(r plan.Result) {
	w.line("\n## The credentials\n")
	c, ns := r.Credentials.Value, r.ControllerNamespace.Value
	if c.Owner == plan.HyperShift {
		w.hostedCredentials(c, ns)
		return
	}
	if c.Owner == plan.CredentialOperator {
		w.requested(r)
		return
	}
	w.applicationCredential(r)
	w.line("Create the Secret from it:\n")
	w.line("```sh")
	if r.Target == v1alpha1.HostedControlPlane {
		w.line("# in the management cluster")
	} else if !brought(ns) { // The namespace must be there before the Secret.
		w.here()
		w.line("kubectl apply -f $DIR/namespace.yaml")
	}
	ca := ""
	if key := r.CAKey.Value; key != "" {
		ca = " --from-file=" + shell.Word(key) + "=ca.pem"
	}
	w.line("kubectl create secret generic %s --namespace %s --from-file=%s=driver-clouds.yaml%s", shell.Word(c.SecretName), shell.Word(ns), shell.Word(c.Key), ca)
	w.line("```")
	w.ownCA(r)
}

// applicationCredential says how to make the file with the credentials. The clouds.yaml of a person has a password, and often more than one cloud.
func (w *text) applicationCredential(r plan.Result) {
	w.line("The driver has a file of its own, `driver-clouds.yaml`, with an application credential that allows its requests and nothing else. Do not take your own")
	w.line("`clouds.yaml`: it has your password. Keep the new file outside of this directory and of what you commit.\n")
	w.line("Create the application credential as a member of the project. `mycloud` is the entry in your own `clouds.yaml`. The secret is shown this once:\n")
	w.line("    cinder-csi-driver access-rules > rules.json")
	w.line("    openstack --os-cloud mycloud application credential create cinder-csi --role member --access-rules rules.json -f yaml -c id -c secret\n")
	w.line("%s has these rules too. Put the ID and the secret into `driver-clouds.yaml`, which nobody else may read (`chmod 600`):\n", docs(r, "The page about access rules", pages.AccessRules))
	w.line("    clouds:")
	w.line("      %s:", yamlWord(r.Credentials.Value.Cloud))
	w.line("        auth_type: v3applicationcredential")
	w.line("        auth:")
	w.line("          auth_url: %s", yamlWord(r.Cloud.AuthURL))
	w.line("          application_credential_id: ...")
	w.line("          application_credential_secret: ...")
	if r.Cloud.Region != "" {
		w.line("        region_name: %s", yamlWord(r.Cloud.Region))
	}
	w.line("")
}

// ownCA says what a cloud with a private CA needs, unless the configuration has it.
func (w *text) ownCA(r plan.Result) {
	switch {
	case r.CAKey.Value != "":
		w.line("\nThe file `ca.pem` has the certificates of the CA of OpenStack. A `cacert` in `driver-clouds.yaml` does not count: it is a path of your machine.")
	case r.CASource.Value.ConfigMap == "":
		w.line("\nIf a private CA has signed the certificates of OpenStack, add `--from-file=cacert=ca.pem` with the certificates of that CA. Without them")
		w.line("the driver cannot log in. A `cacert` in `driver-clouds.yaml` does not count: it is a path of your machine.")
	}
}

// hostedCredentials gives no command that writes: HyperShift overwrites its own Secret at the next reconcile.
func (w *text) hostedCredentials(c plan.Credentials, namespace string) {
	w.line("Nothing to create. HyperShift copies the Secret from the namespace of the HostedCluster, where `spec.platform.openstack.identityRef`")
	w.line("names it. If that is another name, set `spec.credentials.secretName`. Its `%s` must have the entry `%s`. To replace the credentials,", c.Key, c.Cloud)
	w.line("change the Secret there: the driver reads the copy again without a restart. This shows the keys of the copy, not their values:\n")
	w.line("```sh")
	w.line("# in the management cluster")
	w.line("kubectl describe secret %s --namespace %s", shell.Word(c.SecretName), shell.Word(namespace))
	w.line("```\n")
	w.line("If a private CA has signed the certificates of OpenStack, its certificates belong into the key `cacert` of that Secret. HyperShift copies")
	w.line("them too. The file that `cacert` in `clouds.yaml` names does not exist in the pods, and does not matter.")
}
