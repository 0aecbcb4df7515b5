import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Properties;
import java.util.Set;
import org.codehaus.plexus.classworlds.ClassWorld;
import org.codehaus.plexus.classworlds.launcher.Launcher;
import org.codehaus.plexus.classworlds.realm.ClassRealm;

/** Runs commands of one Maven, as its own program does in a process each: Maven HOME ANSWERS; see Resident. */
public final class Maven {
    private final Launcher launcher = new Launcher();
    private final Properties properties = new Properties();
    private final Set<String> realms = new HashSet<>();

    private Maven(Path home) throws Exception {
        System.setProperty("maven.home", home.toString());
        System.setProperty("maven.mainClass", "org.apache.maven.cling.MavenCling"); // Maven 4 has several
        launcher.setSystemClassLoader(ClassLoader.getSystemClassLoader());
        try (InputStream configuration = Files.newInputStream(home.resolve("bin/m2.conf"))) {
            launcher.configure(configuration);
        }
        properties.putAll(System.getProperties());
        launcher.getWorld().getRealms().forEach(realm -> realms.add(realm.getId()));
    }

    public static void main(String[] arguments) throws Exception {
        Maven maven = new Maven(Path.of(arguments[0]));
        Resident.serve(maven::run, arguments[1]);
    }

    private int run(String folder, String[] arguments, PrintStream printed) throws Exception {
        PrintStream out = System.out;
        PrintStream error = System.err;
        ClassWorld world = launcher.getWorld();
        Properties own = new Properties();
        own.putAll(properties);
        own.setProperty("user.dir", folder);
        own.setProperty("maven.multiModuleProjectDirectory", folder);
        System.setProperties(own);
        System.setOut(printed);
        System.setErr(printed);
        Thread.currentThread().setContextClassLoader(world.getClassRealm("plexus.core"));
        try {
            return call(folder, arguments, printed);
        } finally {
            System.setOut(out);
            System.setErr(error);
            for (String each : world.getRealms().stream().map(ClassRealm::getId).toList()) {
                if (!realms.contains(each)) {
                    world.disposeRealm(each); // of a plugin
                }
            }
        }
    }

    private int call(String folder, String[] arguments, PrintStream printed) throws Exception {
        Class<?> program = launcher.getMainClass();
        ClassWorld world = launcher.getWorld();
        if (program.getSimpleName().equals("MavenCling")) {
            Method main =
                    program.getMethod(
                            "main", String[].class, ClassWorld.class, InputStream.class, OutputStream.class, OutputStream.class);
            return (int) main.invoke(null, arguments, world, InputStream.nullInputStream(), printed, printed);
        }
        Object maven = program.getConstructor(ClassWorld.class).newInstance(world);
        Method run = program.getMethod("doMain", String[].class, String.class, PrintStream.class, PrintStream.class);
        return (int) run.invoke(maven, arguments, folder, printed, printed);
    }
}
