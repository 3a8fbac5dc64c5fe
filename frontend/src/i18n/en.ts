import agents from './en/agents.json'
import apps from './en/apps.json'
import commands from './en/commands.json'
import common from './en/common.json'
import demo from './en/demo.json'
import files from './en/files.json'
import folders from './en/folders.json'
import gpus from './en/gpus.json'
import history from './en/history.json'
import images from './en/images.json'
import launcher from './en/launcher.json'
import notifications from './en/notifications.json'
import phrases from './en/phrases.json'
import playground from './en/playground.json'
import recipes from './en/recipes.json'
import secrets from './en/secrets.json'
import services from './en/services.json'
import session from './en/session.json'
import sessions from './en/sessions.json'
import settings from './en/settings.json'
import start from './en/start.json'
import terminal from './en/terminal.json'
import tour from './en/tour.json'
import usage from './en/usage.json'

export const en = {
  agents,
  apps,
  commands,
  common,
  demo,
  files,
  folders,
  gpus,
  history,
  images,
  launcher,
  notifications,
  phrases,
  playground,
  recipes,
  secrets,
  services,
  session,
  sessions,
  settings,
  start,
  terminal,
  tour,
  usage,
}
