package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
)

// do sends a request in the draft that the target has, and returns the body of an answer of status 200.
func (t *target) do(ctx context.Context, client *http.Client, method, path, contentType string, body io.Reader) ([]byte, error) {
	call, err := http.NewRequestWithContext(ctx, method, t.url+path, body)
	if err != nil {
		return nil, err
	}
	call.Header.Set("X-Auth-Token", t.token)
	if t.session != "" && strings.Contains(path, t.environment) {
		call.Header.Set("X-Configuration-Session", t.session)
	}
	if body != nil {
		call.Header.Set("Content-Type", contentType)
	}
	response, err := client.Do(call)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s %s with %s: %s", t.name, method, path, response.Status, bytes.TrimSpace(content))
	}
	return content, err
}

// send is do with a JSON body (nil: none) and an answer in JSON (nil: it does not matter).
func (t *target) send(ctx context.Context, client *http.Client, method, path string, body, answer any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	content, err := t.do(ctx, client, method, path, "application/json", reader)
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(content, answer)
}

// same reads a path whose answer must always be the same.
func same(path string) func(context.Context, *target, *http.Client) error {
	return func(ctx context.Context, t *target, client *http.Client) error {
		path := strings.Replace(path, "ENVIRONMENT", t.environment, 1)
		content, err := t.do(ctx, client, http.MethodGet, path, "", nil)
		if err != nil {
			return err
		}
		if expected := t.answers[path]; len(content) != len(expected) {
			return fmt.Errorf("%s answers GET %s with %d bytes, and before with %d", t.name, path, len(content), len(expected))
		}
		return nil
	}
}

// A deployment is polled after a twentieth of the time that it has taken so far, and at the earliest after firstLook. The delay of the last
// poll is then the same share of a fast and of a slow deployment, and polls do not load a slow server.
const firstLook = 500 * time.Microsecond

// deploy makes an environment, deploys it empty, waits until it is ready, and abandons it.
func deploy(ctx context.Context, t *target, client *http.Client) error {
	var environment, session struct{ ID, Status string }
	name := map[string]any{"name": fmt.Sprintf("deployed %d", time.Now().UnixNano())}
	if err := t.send(ctx, client, http.MethodPost, "/v1/environments", name, &environment); err != nil {
		return err
	}
	path := "/v1/environments/" + environment.ID
	if err := t.send(ctx, client, http.MethodPost, path+"/configure", nil, &session); err != nil {
		return err
	}
	if err := t.send(ctx, client, http.MethodPost, path+"/sessions/"+session.ID+"/deploy", nil, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	submitted := time.Now()
	for environment.Status != "ready" {
		if err := t.send(ctx, client, http.MethodGet, path, nil, &environment); err != nil {
			return err
		}
		switch environment.Status {
		case "ready":
		case "deploying":
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for the deployment: %w", ctx.Err())
			case <-time.After(max(firstLook, time.Since(submitted)/20)):
			}
		default:
			return fmt.Errorf("the environment is %s after its deployment", environment.Status)
		}
	}
	return t.send(ctx, client, http.MethodDelete, path+"?abandon=true", nil, nil)
}

// fill creates the objects that the requests read.
func (t *target) fill(ctx context.Context) error {
	if err := t.fillCatalog(ctx); err != nil {
		return fmt.Errorf("upload packages to %s: %w", t.name, err)
	}
	if err := t.fillEnvironments(ctx); err != nil {
		return fmt.Errorf("make environments of %s: %w", t.name, err)
	}
	t.answers = map[string][]byte{}
	for _, path := range []string{"/v1/catalog/packages?limit=50", "/v1/environments", "/v1/environments/" + t.environment,
		"/v1/environments/" + t.environment + "/services"} {
		var err error
		if t.answers[path], err = t.do(ctx, http.DefaultClient, http.MethodGet, path, "", nil); err != nil {
			return err
		}
	}
	return nil
}

// fillCatalog uploads packages until a page of 50 is full.
func (t *target) fillCatalog(ctx context.Context) error {
	var page struct{ Packages []json.RawMessage }
	for i := range packages {
		if err := t.send(ctx, http.DefaultClient, http.MethodGet, "/v1/catalog/packages?limit=50", nil, &page); err != nil || len(page.Packages) >= packages {
			return err
		}
		if err := t.upload(ctx, i); err != nil {
			return err
		}
	}
	err := t.send(ctx, http.DefaultClient, http.MethodGet, "/v1/catalog/packages?limit=50", nil, &page)
	if err == nil && len(page.Packages) < packages {
		err = fmt.Errorf("it lists %d after all uploads, not %d", len(page.Packages), packages)
	}
	return err
}

// fillEnvironments makes environments up to the desired number, and a draft of the first with applications of two parts each.
func (t *target) fillEnvironments(ctx context.Context) error {
	var list struct{ Environments []struct{ ID string } }
	if err := t.send(ctx, http.DefaultClient, http.MethodGet, "/v1/environments", nil, &list); err != nil {
		return err
	}
	if len(list.Environments) > environments {
		return fmt.Errorf("it has %d already, more than %d", len(list.Environments), environments)
	}
	for len(list.Environments) < environments {
		var made struct{ ID string }
		name := map[string]any{"name": fmt.Sprintf("bench %d", time.Now().UnixNano())}
		if err := t.send(ctx, http.DefaultClient, http.MethodPost, "/v1/environments", name, &made); err != nil {
			return err
		}
		list.Environments = append(list.Environments, made)
	}
	var session struct{ ID string }
	t.environment = list.Environments[0].ID
	path := "/v1/environments/" + t.environment
	if err := t.send(ctx, http.DefaultClient, http.MethodPost, path+"/configure", nil, &session); err != nil {
		return err
	}
	t.session = session.ID
	for i := range applications {
		object := func(part string, properties map[string]any) map[string]any {
			properties["?"] = map[string]any{"id": fmt.Sprintf("%s-%d-%s", t.environment, i, part), "type": "org.bench.App00"}
			return properties
		}
		application := object("whole", map[string]any{"name": "application of a user", "size": 3,
			"first":  object("first", map[string]any{"name": "one part", "text": strings.Repeat("x", 100)}),
			"second": object("second", map[string]any{"name": "another part"})})
		if err := t.send(ctx, http.DefaultClient, http.MethodPost, path+"/services", application, nil); err != nil {
			return err
		}
	}
	return nil
}

// upload sends a package as users make them: a class, a form, a logo, some tags.
func (t *target) upload(ctx context.Context, number int) error {
	name := fmt.Sprintf("org.bench.App%02d", number)
	return t.uploadFiles(ctx, name, `{"categories": ["Web"], "tags": ["listed"]}`, map[string]string{
		"manifest.yaml": "Format: 1.4\nType: Application\nFullName: " + name + "\nName: Benchmark application " + name + "\nAuthor: Burano\n" +
			"Description: An application that is there to be listed, with a sentence that is as long as such sentences are.\n" +
			"Tags: [bench, web, linux]\nClasses:\n  " + name + ": App.yaml\nUI: ui.yaml\nLogo: logo.png\n",
		"Classes/App.yaml": "Name: " + name + "\nProperties:\n  name:\n    Contract: $.string().notNull()\n",
		"UI/ui.yaml":       "Version: 2.2\nApplication:\n  ?:\n    type: " + name + "\nForms: []\n",
		"logo.png":         "\x89PNG\r\n\x1a\n",
	})
}

// uploadFiles sends a package of these files, by their paths in it, with metadata in JSON.
func (t *target) uploadFiles(ctx context.Context, name, metadata string, content map[string]string) error {
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	for path, text := range content {
		file, err := files.Create(path)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(file, text); err != nil {
			return err
		}
	}
	if err := files.Close(); err != nil {
		return err
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := form.WriteField("__metadata__", metadata); err != nil {
		return err
	}
	file, err := form.CreateFormFile(name, name+".zip")
	if err != nil {
		return err
	}
	if _, err := file.Write(archive.Bytes()); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	_, err = t.do(ctx, http.DefaultClient, http.MethodPost, "/v1/catalog/packages", form.FormDataContentType(), &body)
	return err
}
