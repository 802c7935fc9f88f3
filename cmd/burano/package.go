package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog"
)

// packageRow is a package as the API tells it.
type packageRow struct {
	ID       string `json:"id"`
	FullName string `json:"fully_qualified_name"`
	Name     string `json:"name"`
	Type     string `json:"type"`
	Public   bool   `json:"is_public"`
	Enabled  bool   `json:"enabled"`
}

func packageCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "package", Short: "Packages of the catalog"}
	command.AddCommand(packageImportCommand(connection), packageListCommand(connection), packageCheckCommand(), packageTestCommand(), packageRunCommand())
	return command
}

func packageImportCommand(connection *connection) *cobra.Command {
	var exists string
	var public bool
	command := &cobra.Command{
		Use:   "import PATH…",
		Short: "Upload packages: zips, or folders which are packed first",
		Example: `  burano package import ./io.example.App
  burano package import --exists-action u app.zip`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, paths []string) error {
			if exists != "s" && exists != "u" && exists != "a" {
				return fmt.Errorf("--exists-action is s (skip), u (update) or a (abort), not %q", exists)
			}
			client, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			for _, path := range paths {
				name, zip, err := packed(path)
				if err != nil {
					return err
				}
				done, err := client.importPackage(command.Context(), name, zip, exists, public)
				if err != nil {
					return fmt.Errorf("import %s: %w", path, err)
				}
				fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", name, done)
			}
			return nil
		},
	}
	command.Flags().StringVar(&exists, "exists-action", "a", "when the project has the package already: s skip, u update (delete and upload), a abort")
	command.Flags().BoolVar(&public, "public", false, "let every project use the package")
	return command
}

// packed returns the full name and the zip of a package that lies at path as a zip or as a folder. It is read as the server will
// read it, so that what is wrong with it is said before anything is sent.
func packed(path string) (name string, zip []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", nil, err
	}
	if info.IsDir() {
		var buffer bytes.Buffer
		if err := catalog.WriteZip(&buffer, os.DirFS(path)); err != nil {
			return "", nil, fmt.Errorf("pack %s: %w", path, err)
		}
		zip = buffer.Bytes()
	} else if zip, err = os.ReadFile(path); err != nil {
		return "", nil, err
	}
	read, err := catalog.ReadZip(bytes.NewReader(zip), int64(len(zip)))
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return read.FullName(), zip, nil
}

// importPackage uploads a package and says in a word what was done.
func (c *client) importPackage(ctx context.Context, name string, zip []byte, exists string, public bool) (string, error) {
	err := c.upload(ctx, name, zip, public)
	if !isStatus(err, http.StatusConflict) || exists == "a" {
		return "imported", err
	}
	if exists == "s" {
		return "is there already, left as it is", nil
	}
	var own struct {
		Packages []packageRow `json:"packages"`
	}
	if err := c.call(ctx, http.MethodGet, "/v1/catalog/packages?owned=true&include_disabled=true&fqn="+url.QueryEscape(name), nil, &own); err != nil {
		return "", err
	}
	if len(own.Packages) == 0 {
		return "", err // the conflict is with somebody else's package
	}
	for _, row := range own.Packages {
		if err := c.call(ctx, http.MethodDelete, "/v1/catalog/packages/"+row.ID, nil, nil); err != nil {
			return "", err
		}
	}
	return "updated", c.upload(ctx, name, zip, public)
}

func (c *client) upload(ctx context.Context, name string, zip []byte, public bool) error {
	settings, err := json.Marshal(map[string]any{"is_public": public})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, fileErr := form.CreateFormFile(name, name+".zip")
	if fileErr == nil {
		_, fileErr = file.Write(zip)
	}
	if err := errors.Join(form.WriteField("__metadata__", string(settings)), fileErr, form.Close()); err != nil {
		return err
	}
	_, err = c.send(ctx, http.MethodPost, "/v1/catalog/packages", &body, "Content-Type", form.FormDataContentType())
	return err
}

func packageListCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the packages that can be deployed",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(command.OutOrStdout(), 0, 4, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tFULL NAME\tNAME\tTYPE\tPUBLIC")
			for marker := ""; ; {
				var page struct {
					Packages []packageRow `json:"packages"`
					Next     string       `json:"next_marker"`
				}
				if err := client.call(command.Context(), http.MethodGet, "/v1/catalog/packages?catalog=true&marker="+url.QueryEscape(marker), nil, &page); err != nil {
					return err
				}
				for _, row := range page.Packages {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%t\n", row.ID, row.FullName, row.Name, row.Type, row.Public)
				}
				if marker = page.Next; marker == "" {
					return table.Flush()
				}
			}
		},
	}
}
