# Two application credentials with the access rules that the driver and the generator need, and no other.
# docs/reference/access-rules.md explains the rules. The state of Terraform holds both secrets: keep it where secrets are kept.

terraform {
  required_version = ">= 1.5"
  required_providers {
    openstack = {
      source  = "terraform-provider-openstack/openstack"
      version = ">= 2.0"
    }
  }
}

locals {
  # The controller of the driver. `cinder-csi-driver access-rules` prints these rules.
  driver_rules = [
    { service = "compute", method = "GET", path = "/v2.1/servers/*" },
    { service = "compute", method = "GET", path = "/v2.1/servers/*/os-volume_attachments" },
    { service = "compute", method = "POST", path = "/v2.1/servers/*/os-volume_attachments" },
    { service = "compute", method = "DELETE", path = "/v2.1/servers/*/os-volume_attachments/*" },
    { service = "volumev3", method = "GET", path = "/v3/*/attachments" },
    { service = "volumev3", method = "DELETE", path = "/v3/*/attachments/*" },
    { service = "volumev3", method = "GET", path = "/v3/*/attachments/*" },
    { service = "volumev3", method = "POST", path = "/v3/*/backups" },
    { service = "volumev3", method = "DELETE", path = "/v3/*/backups/*" },
    { service = "volumev3", method = "GET", path = "/v3/*/backups/*" },
    { service = "volumev3", method = "POST", path = "/v3/*/backups/*/restore" },
    { service = "volumev3", method = "GET", path = "/v3/*/messages" },
    { service = "volumev3", method = "GET", path = "/v3/*/os-availability-zone" },
    { service = "volumev3", method = "GET", path = "/v3/*/os-quota-sets/*" },
    { service = "volumev3", method = "POST", path = "/v3/*/snapshots" },
    { service = "volumev3", method = "DELETE", path = "/v3/*/snapshots/*" },
    { service = "volumev3", method = "GET", path = "/v3/*/snapshots/*" },
    { service = "volumev3", method = "GET", path = "/v3/*/types" },
    { service = "volumev3", method = "GET", path = "/v3/*/types/default" },
    { service = "volumev3", method = "POST", path = "/v3/*/volumes" },
    { service = "volumev3", method = "DELETE", path = "/v3/*/volumes/*" },
    { service = "volumev3", method = "GET", path = "/v3/*/volumes/*" },
    { service = "volumev3", method = "POST", path = "/v3/*/volumes/*/action" },
    { service = "volumev3", method = "POST", path = "/v3/*/volumes/*/metadata" },
    { service = "volumev3", method = "DELETE", path = "/v3/*/volumes/*/metadata/*" },
  ]

  # A pipeline that runs `generate --check`. It only reads.
  generator_rules = [
    { service = "compute", method = "GET", path = "/v2.1/os-availability-zone" },
    { service = "volumev3", method = "GET", path = "/v3/*/backups" },
    { service = "volumev3", method = "GET", path = "/v3/*/group_types" },
    { service = "volumev3", method = "GET", path = "/v3/*/limits" },
    { service = "volumev3", method = "GET", path = "/v3/*/os-availability-zone" },
    { service = "volumev3", method = "GET", path = "/v3/*/os-quota-sets/*" },
    { service = "volumev3", method = "GET", path = "/v3/*/types/default" },
    { service = "volumev3", method = "GET", path = "/v3/*/types" },
    { service = "volumev3", method = "GET", path = "/v3/" },
  ]
}

resource "openstack_identity_application_credential_v3" "driver" {
  name        = "cinder-csi"
  description = "Cinder CSI driver of one Kubernetes cluster"
  roles       = ["member"]

  dynamic "access_rules" {
    for_each = local.driver_rules
    content {
      service = access_rules.value.service
      method  = access_rules.value.method
      path    = access_rules.value.path
    }
  }
}

resource "openstack_identity_application_credential_v3" "generator" {
  name        = "cinder-csi-generator"
  description = "Pipeline that compares a bundle with the cloud"
  roles       = ["reader"]

  dynamic "access_rules" {
    for_each = local.generator_rules
    content {
      service = access_rules.value.service
      method  = access_rules.value.method
      path    = access_rules.value.path
    }
  }
}

output "driver" {
  description = "ID and secret for the clouds.yaml of the driver"
  sensitive   = true
  value = {
    application_credential_id     = openstack_identity_application_credential_v3.driver.id
    application_credential_secret = openstack_identity_application_credential_v3.driver.secret
  }
}

output "generator" {
  description = "ID and secret for OS_APPLICATION_CREDENTIAL_ID and OS_APPLICATION_CREDENTIAL_SECRET of the pipeline"
  sensitive   = true
  value = {
    application_credential_id     = openstack_identity_application_credential_v3.generator.id
    application_credential_secret = openstack_identity_application_credential_v3.generator.secret
  }
}
