package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

func (p appCommands) openLinkCommand() *cobra.Command {
	var print bool
	cmd := &cobra.Command{Use: "open-link LINK", Short: "Open a slipway:// link",
		Long: `Open-link opens a link in the desktop window, or in the browser if there is none.
slipway://run?image=… fills in the launcher and slipway://open/SESSION shows a session.
Nothing happens before you confirm.`,
		Example: "  slipway open-link 'slipway://run?image=python:3.12&cpu=2&memory=4g'"}
	cmd.Flags().BoolVar(&print, "print", false, "print the address instead of opening it")
	cmd.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		if _, err := recipe.ParseLink(args[0]); err != nil {
			var fault *recipe.Fault
			if errors.As(err, &fault) {
				return fail(session.CodeRecipeInvalid, sentence(fault.Message), fault.Hint)
			}
			return err
		}
		path := LinkPath(args[0])
		if !print {
			shown, err := route.WindowShow.Body(api.WindowRequest{Path: path}).Ask(ctx, c)
			if err != nil || shown.Shown {
				return err
			}
		}
		return p.openPage(ctx, c, path, print)
	})
	return cmd
}

// LinkPath is the page of the interface that shows a link and asks.
func LinkPath(link string) string { return "/link?" + url.Values{"url": {link}}.Encode() }

// openPage opens a page of the interface in the browser, logged in.
func (p appCommands) openPage(ctx context.Context, c *caller, path string, print bool) error {
	login, err := route.LoginLink.Ask(ctx, c)
	if err != nil {
		return err
	}
	login.URL += "&next=" + url.QueryEscape(path)
	if !print {
		err := p.openBrowser(ctx, c, login.URL)
		if err == nil {
			return nil
		}
		p.notice("The browser could not be opened: %v.", err)
	}
	return p.print(login, func(w io.Writer) { fmt.Fprintln(w, login.URL) })
}
