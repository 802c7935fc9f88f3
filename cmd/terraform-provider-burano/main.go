// Command terraform-provider-burano is Burano's provider for Terraform and OpenTofu, which start it. See docs/terraform.md.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/burano/burano/cmd/terraform-provider-burano/provider"
)

// version is set by the linker.
var version = "0.1.0-dev"

// address is the source by which configurations name the provider; it is in no public registry.
const address = "burano.internal/burano/burano"

func main() {
	if err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{Address: address}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
