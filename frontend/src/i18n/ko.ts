import agents from './ko/agents.json'
import apps from './ko/apps.json'
import commands from './ko/commands.json'
import common from './ko/common.json'
import demo from './ko/demo.json'
import files from './ko/files.json'
import folders from './ko/folders.json'
import gpus from './ko/gpus.json'
import history from './ko/history.json'
import images from './ko/images.json'
import launcher from './ko/launcher.json'
import notifications from './ko/notifications.json'
import phrases from './ko/phrases.json'
import playground from './ko/playground.json'
import recipes from './ko/recipes.json'
import secrets from './ko/secrets.json'
import services from './ko/services.json'
import session from './ko/session.json'
import sessions from './ko/sessions.json'
import settings from './ko/settings.json'
import start from './ko/start.json'
import terminal from './ko/terminal.json'
import tour from './ko/tour.json'
import usage from './ko/usage.json'

export const ko = {
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
