// The folder of a site by its name, null if there is none:
//   kiln.DOMAIN -> /kiln/public, kiln.edit.DOMAIN -> /kiln/edit
//   t-0123456789abcdef--kiln.edit.DOMAIN -> /.previews/kiln/t-0123456789abcdef, the preview of a conversation
function site(host) {
    var ending = '.DOMAIN';
    if (host.slice(-ending.length) !== ending) {
        return null;
    }
    var name = host.slice(0, -ending.length);
    var found = /^([a-z0-9-]{1,32})$/.exec(name);
    if (found) {
        return '/' + found[1] + '/public';
    }
    found = /^(t-[0-9a-f]{16})--([a-z0-9-]{1,32})\.edit$/.exec(name);
    if (found) {
        return '/.previews/' + found[2] + '/' + found[1];
    }
    found = /^([a-z0-9-]{1,32})\.edit$/.exec(name);
    return found ? '/' + found[1] + '/edit' : null;
}
